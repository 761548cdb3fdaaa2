"""Fit of the model to a run's records, its predictions, and their deviations."""
from __future__ import annotations

from dataclasses import replace

from swell.bench.scaling import model
from swell.bench.scaling.model import CASES, PREDICTED, Share


class Prediction:
    """The model fitted to the records of a run.

    Parameters
    ----------
    records : list of dict
        Records of runs with 1 rank and with at least one larger number of ranks.
    threads, cores : int
        Threads of a rank; cores of the machine. The model is fitted to runs with more threads than cores only if there
        are no others, since their ranks wait for one another.

    Attributes
    ----------
    links : Links
    copies : dict of int to float
        Bytes a second of a rank's copy, by the number of ranks.
    local : dict of (str, str, str) to Local
        Speed of one rank, by (scaling, matrix, method).
    most : int
        The largest number of ranks among the runs that the links are fitted to.
    crowded : bool
        These runs had more threads than cores.
    """

    def __init__(self, records, threads, cores):
        runs = _select(records, "scaling links")
        fitting = [r for r in runs if r["ranks"] * threads <= cores and r["ranks"] > 1] or runs[1:2]
        self.crowded = fitting[0]["ranks"] * threads > cores
        self.links = model.fit_links(fitting[-1]["messages"],
                                     [(r["ranks"], k, t) for r in fitting for k, t in r["reductions"]])
        self.copies = {r["ranks"]: r["copy_bytes_per_second"] for r in runs}
        self.most = fitting[-1]["ranks"]
        self._points = [r for r in _select(records, "scaling iteration") if r["seconds"]]
        self._shares = {(r["matrix"], r["of_ranks"]): _share(r) for r in _select(records, "scaling shares")}
        self.local = {_key(r): self._fitted(r) for r in self._points if r["ranks"] == 1 and r["scaling"] != "overhead"}

    def _fitted(self, record):
        points = [(1, _share(r), r["seconds"]) for r in self._points if r["ranks"] == 1
                  and r["method"] == record["method"] and (r is record or r["scaling"] == "overhead")]
        return model.fit_local(CASES[record["method"]], points, None)

    def _on(self, key, ranks):
        """Return the speed, a Local, of one of ``ranks`` ranks in the case ``key``, (scaling, matrix, method). Other
        ranks may slow down its memory, never speed it up."""
        copy = self.copies.get(ranks, self.copies[self.most])
        return replace(self.local[key], speed=self.local[key].speed * min(1.0, copy / self.copies[1]))

    def records(self) -> list[dict]:
        """Return a record (dict) for every measured number of ranks, with the measured time, and for every number in
        PREDICTED."""
        records = []
        for key in self.local:
            scaling, matrix, method = key
            measured = {r["ranks"]: r for r in self._points if _key(r) == key}
            wanted = {ranks: _share(r) for ranks, r in measured.items()}
            for ranks in (p for p in PREDICTED if p not in measured):
                if scaling == "weak":
                    wanted[ranks] = model.share_of_slab(round(measured[1]["share_rows"] ** (1 / 3)), ranks)
                elif (matrix, ranks) in self._shares:
                    wanted[ranks] = self._shares[matrix, ranks]
            one_rank = self._parts(key, 1, wanted[1])["seconds"]
            for ranks, share in sorted(wanted.items()):
                parts = self._parts(key, ranks, share)
                ideal = one_rank / (ranks if scaling == "strong" else 1)
                records.append({"benchmark": "scaling prediction", "scaling": scaling, "matrix": matrix,
                                "method": method, "ranks": ranks,
                                "n": measured[1]["n"] * (ranks if scaling == "weak" else 1), **parts,
                                "efficiency": ideal / parts["seconds"],
                                "measured": measured[ranks]["seconds"] if ranks in measured else None})
        return records

    def _parts(self, key, ranks, share) -> dict:
        """Return a dict: the seconds of an iteration, without and with overlap of the exchange, and of its parts.
        ``key`` as in ``_on``; ``share``: a Share."""
        case, local = CASES[key[2]], self._on(key, ranks)
        return {"seconds": model.seconds(case, local, self.links, share, ranks),
                "hidden": model.seconds(case, local, self.links, share, ranks, hidden=True),
                "overhead": local.overhead, "local": local.seconds(case, share) - local.overhead,
                "exchange": self.links.product(case, share) if ranks > 1 else 0.0,
                "reductions": self.links.reductions(case, ranks) if ranks > 1 else 0.0}

    def parameters(self) -> list[tuple]:
        """Return rows (name, value) of the fitted parameters between ranks, for a table."""
        links = self.links
        rows = [("latency of a message α, µs", f"{1e6 * links.latency:.2f}"),
                ("bandwidth of messages β_l, GB/s", f"{1e-9 * links.bandwidth:.2f}"),
                ("step of a reduction α_r, µs", f"{1e6 * links.step:.2f}"),
                ("bandwidth of reductions β_r, GB/s", f"{1e-9 * links.gather:.2f}")]
        rows += [(f"copy β of a rank of {ranks}, GB/s", f"{1e-9 * speed:.2f}") for ranks, speed in self.copies.items()]
        return rows

    def shares_of_speed(self) -> list[tuple]:
        """Return rows of the fitted parameters for each matrix and method, for a table."""
        return [(matrix, scaling, method, f"{1e6 * local.overhead:.1f}", f"{local.speed / self.copies[1]:.2f}")
                for (scaling, matrix, method), local in self.local.items()]


def held_out(predictions) -> list[dict]:
    """Return the predictions (records) of measured iterations that the model was not fitted to."""
    return [r for r in predictions if r["measured"] and r["ranks"] > 1]


def _select(records, benchmark):
    return sorted((r for r in records if r["benchmark"] == benchmark), key=lambda r: r["ranks"])


def _key(record):
    return record["scaling"], record["matrix"], record["method"]


def _share(record):
    return Share(*(record[f"share_{name}"] for name in ("rows", "entries", "ghosts", "neighbours")))
