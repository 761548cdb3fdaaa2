"""L. M. Čejka, "Parallel Computation of LU Decomposition on GPUs for the Numerical Solution of Partial Differential
Equations", master's thesis, Czech Technical University in Prague, 2023.

The comparisons of section 3.1, dense matrices, are in dense_lu.py, those of section 3.2, BDDC, in bddc_cube.py. The
thesis' GPU is an NVIDIA A100.
"""
from swell.bench import bddc, dense_figures
from swell.papers import bddc_cube, dense_lu
from swell.papers.dense_lu import GPU, HERE, by_matrix, medians, narrow_over_wide, on_gpu, over, records, source
from swell.papers.evidence import Part
from swell.papers.paper import Conclusion, Item, Paper
from swell.papers.verdict import all_at_least, all_at_most, at_least, judged, ratio, untested

DECOMPOSERS = ("getrf cm 'cm(pivoting=conditional)' 'pcm(x=8)' 'pcm(x=8, pivoting=conditional)' 'pcm(x=16)' "
               "'pcm(x=32)' 'icm(x=8)' 'icm(x=16)' 'icm(x=32)'")
SOLVERS = "ss trsm getrs 'is(x=8)' 'is(x=32)' 'is(x=128)'"
TOLERANCES = "0,1e-10,1e-5,1e-2,0.1,1"
CHANGES = "1e-2,1e-4"                           # of a matrix's entries from one time step to the next
FULL = (f"dense-lu --generated random border bordered --sizes 230,558,1814,2599,3182,4156,10135 "
        f"--decomposers {DECOMPOSERS} --solvers {SOLVERS} --tolerances {TOLERANCES}")
THESIS_FORMS = "'icm(x={x}, form=plain{section})' 'icm(x={x}, form=plain, pivot_upper=inf{section})'"
IN_BDDC = ("getrf 'pcm(x={x})' 'icm(x={x})' 'icm(x={x}, tolerance=1e-6)' 'icm(x={x}, tolerance=0.1)' "
           "'icm(x={x}, tolerance=0.5)' 'icm(x={x}, tolerance=1)'")
CUBES = f"bddc --elements 5,10,15,20,25 --decomposers {IN_BDDC.format(x=32)} 'icm(x=8)' 'icm(x=16)' 'pcm(x=8)'"
PARTS = (
    Part("dense here", FULL, "dense-lu --generated random border bordered --sizes 124,300 --repeat 3 --decomposers "
         "getrf cm 'cm(pivoting=conditional)' 'pcm(x=8)' 'pcm(x=8, pivoting=conditional)' 'icm(x=8)' "
         f"--solvers ss trsm getrs 'is(x=8)' 'is(x=128)' --tolerances {TOLERANCES}", sample="cpu_lu_bddc_dense.jsonl"),
    Part("sections here", "dense-lu --generated random border bordered --sizes 558 --types float64 --solvers trsm "
         f"--decomposers {THESIS_FORMS.format(x=32, section='')} --changes {CHANGES}",
         "dense-lu --generated random border bordered --sizes 300 --types float64 --repeat 1 --solvers trsm "
         f"--decomposers {THESIS_FORMS.format(x=8, section=', section=64')} --changes {CHANGES}",
         sample="cpu_lu_bddc_sections.jsonl"),
    Part("random", FULL, stored="h200_dense_random.jsonl"),
    Part("bordered", FULL, stored="h200_dense_bordered.jsonl"),
    Part("cube here", CUBES, f"bddc --elements 5,8,10 --repeat 1 --decomposers {IN_BDDC.format(x=8)}",
         sample="cpu_lu_bddc_cube.jsonl"),
    Part("cube", CUBES, stored="h200_bddc.jsonl"),
    Part("libraries", "", stored="h200_dense_libraries.jsonl"),
)


def best_pcm_over_icm(evidence):
    """Judge: ICM beats PCM on BDDC's matrices. The least ratio of PCM's best time to ICM's."""
    of = by_matrix([r for r in on_gpu(evidence, dtype="float64") if r["matrix"].startswith("bordered")])
    best = [[min((r["seconds"] for name, r in methods.items() if name.startswith(method)), default=None)
             for method in ("PCM(", "ICM(")] for methods in of.values()]
    return all_at_least("least time of the best PCM / of the best ICM, bordered matrices", "2.0, 4.4 (poc-24, poc-32)",
                        [ratio(*pair) for pair in best], 1, source(evidence, GPU))


def icm_over_pcm(evidence):
    """Judge: of the thesis' own methods PCM is the fastest in all. ICM's best total over PCM's."""
    of = by_matrix(on_gpu(evidence, dtype="float64")).values()
    sums = [sum(min(r["seconds"] for name, r in methods.items() if name.startswith(method)) for methods in of
                if {"PCM", "ICM"} <= {name.partition("(")[0] for name in methods}) for method in ("ICM(", "PCM(")]
    return at_least("time for all matrices with the best ICM / the best PCM", "7.5", ratio(*sums), 1,
                    source(evidence, GPU))


def spread_of_measures(evidence):
    """Judge: the largest difference is no measure of accuracy. The spread of its ratio to the backward error."""
    ratios = [r["max_difference"] / r["backward_error"] for parts in (GPU, HERE)
              for r in records(evidence, "decomposition", parts, dtype="float64")
              if r["backward_error"] and r["max_difference"]]
    return at_least("largest over least ratio of max |PA − LU| to the backward error", "no number",
                    ratio(max(ratios, default=None), min(ratios, default=None)), 1e3, source(evidence, (*GPU, *HERE)))


def own_accuracy(evidence):
    """Judge: of the thesis' own decomposers the sequential one is the most accurate. The least median error of PCM and
    ICM over CM's."""
    found = [medians(evidence, HERE, "decomposition", "decomposer", dtype) for dtype in dense_lu.TYPES]
    return all_at_least("least median of the largest difference of PCM and ICM / CM's", "25 (double), 9 (single)", [
        ratio(value, of.get("CM()")) for of in found for method, value in of.items()
        if method.startswith(("PCM", "ICM")) and "conditional" not in method], 1, source(evidence, HERE))


def _faster_in_single(method):
    """Return the judge of a GPU's time in double over that in single precision."""
    return lambda evidence: next(line for line in dense_lu.totals(evidence)
                                 if line.what.startswith(f"{method}: time in double"))


def _all(compare, what, paper, bound=1, at_most=False):
    """Return the judge of all Lines of ``compare``: their least number is ``bound`` at least, or the largest at most.
    """
    def judge(evidence):
        tested = [line for line in compare(evidence) if line.ours]
        return (all_at_most if at_most else all_at_least)(
            what, paper, [float(line.ours) for line in tested], bound,
            "; ".join(dict.fromkeys(line.source for line in tested)))
    return judge


def draw(evidence):
    """Yield pairs (caption, figure) of a GPU's stored records."""
    cubes = [{"problem": "poisson", "ratio": None} | r for (_, rhs), of in
             bddc_cube.cubes(evidence, "cube", device="cuda").items() if rhs == "ones" for r in of.values()]
    for parts, figures in ((GPU, lambda: dense_figures.figures(on_gpu(evidence), (), on_gpu(evidence, "solution"))),
                           (("cube",), lambda: bddc.figures(cubes))):
        if any(evidence[part].records and not evidence[part].html for part in parts):
            yield from ((f"{caption}. {source(evidence, parts)}", figure) for caption, figure in figures())


def fastest_solver(evidence):
    """Judge: trsm is the fastest solver. The least time of another one over its, on one matrix."""
    values = over(evidence, "Trsm()", "solution", "solver").values()
    return all_at_least("least time of another solver / trsm's", "1.05 (all systems)", values, 1, source(evidence, GPU))


def _missing(why):
    """Return a judge, or a comparison, of what cannot be tested, because of ``why``."""
    return lambda evidence: untested("", "", why)


def magma_on_large(evidence):
    """Judge: MAGMA is faster than cuSOLVER for small H/h, slower for large. cuSOLVER's time over MAGMA's, on the least
    local matrix and on the largest, which must be 1 at least and 1 at most."""
    records = sorted((r for r in evidence["libraries"].records), key=lambda r: r["n"])
    what = "cuSOLVER's time / MAGMA's"
    if not records:
        return untested(what, "above 1, then below", "there is no record")
    least, largest = (r["ms"]["cuSOLVER"] / r["ms"]["MAGMA"] for r in (records[0], records[-1]))
    return judged(f"{what}, {records[0]['n']} and {records[-1]['n']} rows", "above 1, then below",
                  f"{least:.3g}, {largest:.3g}", "at least 1, then at most 1", least >= 1 >= largest,
                  source(evidence, ("libraries",)))


SPARSE = "bayer06, c-22, nd3k and msc10848 are not here"
THE_PAPER = Paper(
    "lu-bddc", "Parallel Computation of LU Decomposition on GPUs for the Numerical Solution of Partial Differential "
    "Equations",
    "The thesis' GPU is an A100. Its 28 sparse matrices are not here: random matrices by its Appendix F, a diagonal "
    "with a border and BDDC's local matrices are. swell's PCM and ICM multiply by blocks; ICM seeks pivots as the "
    "thesis does, PCM and CM in every column unless a name says conditional. PCM() and ICM() have x = 32; form='plain' "
    "is the thesis' own ICM. Figures without numbers in the text are compared with what the text says of them. In BDDC "
    "getrf stands for MAGMA, whose own times are of single matrices, called by PyTorch.",
    PARTS,
    (Item("Tables 2.1 to 2.3: decomposers and solvers", "which solver takes which decomposer's factors",
          dense_lu.compatible),
     Item("Table 3.2: matrices", "fifteen of fifty matrices, of 230 to 11 532 rows", dense_lu.matrices),
     Item("Figure 3.1, tables 3.4 and 3.5: times", "seconds with getrf, CMPP, ICM 32 and PCM 8",
          dense_lu.times, "3.1"),
     Item("Figures 3.2 and 3.3: iterations on random matrices",
          "2 s + p iterations of a diagonal section of s rows with p pivots (one less in the first), s + p below it, "
          "s + 1 to the right",
          dense_lu.laws),
     Item("Figures 3.4 and 3.5: c-22", "one iteration for each section before the border, no pivot", dense_lu.border),
     Item("Figure 3.6: variants of ICM", "the larger the blocks, the faster", narrow_over_wide("ICM"), "3.6"),
     Item("Figure 3.7: variants of PCM", "the smaller the blocks, the faster",
          narrow_over_wide("PCM", widest_wins=False), "3.7"),
     Item("Figure 3.8: speed-up over cuSOLVER", "no other decomposer reaches it", dense_lu.least_over_getrf,
          "3.8"),
     Item("Figure 3.9 and table 3.7: times of all matrices", "cuSOLVER, then PCM, ICM and CMPP; PCM and ICM gain by "
          "single precision", dense_lu.totals, "3.9"),
     Item("Table 3.6: where PCM 32 is slow", "four sparse matrices", lambda evidence: [untested("time", "", SPARSE)]),
     Item("Figure 3.10, tables 3.8 and 3.9: accuracy", "cuSOLVER is the most accurate by the medians",
          dense_lu.accuracy("decomposition", "decomposer", "Getrf", dense_lu.MEDIANS), "3.10"),
     Item("Figure 3.11: processing tolerances", "zero is the most accurate, 1e-10 close to it", dense_lu.tolerances),
     Item("Figures 3.12 and 3.14: pivoting", "full pivoting is more accurate than conditional", dense_lu.pivotings),
     Item("Figure 3.13: no upper bound of pivots", "factors with NaN for 7 of 50 matrices",
          lambda evidence: [dense_lu.not_finite(evidence)]),
     Item("Figure 3.15, tables 3.10 and 3.11: times of solvers", "cuBLAS' trsm, then cuSOLVER's getrs; then the "
          "sequential solver, then the iterative one", dense_lu.solver_times, "3.15"),
     Item("Figure 3.16: variants of the iterative solver", "the smaller the blocks, the faster",
          narrow_over_wide("IS", "solver", widest_wins=False), "3.16"),
     Item("Figure 3.18, tables 3.12 and 3.13: accuracy of solvers", "getrs is the most accurate; the iterative solver "
          "gives invalid results for some systems", dense_lu.solver_accuracy, "3.18"),
     Item("Figure 3.19: local matrices of BDDC", "mostly dense, with patches of zeros; up to 178 rows with H/h = 5, "
          "15 028 with 50", bddc_cube.local_matrices),
     Item("Figure 3.20: speed-up of the setup", "MAGMA and cuSOLVER are the fastest, then ICM", bddc_cube.setups,
          "3.20"),
     Item("Figure 3.21: iterations on BDDC's matrices", "sections need few iterations", bddc_cube.section_iterations),
     Item("Figure 3.22: setup over the tolerance", "the larger the tolerance, the faster", bddc_cube.loose_setups,
          "3.22b"),
     Item("Figure 3.23a: iterations", "equal for all exact decomposers, growing with the tolerance",
          bddc_cube.iterations, "3.23a"),
     Item("Figure 3.23b: time of Krylov's method", "it grows with the tolerance, and is small beside the setup",
          bddc_cube.krylov, "3.23b"),
     Item("Figure 3.24: the whole problem", "cuSOLVER is the fastest, then MAGMA, then ICM with a tolerance of 1",
          bddc_cube.whole, "3.24"),
     Item("Section 3.3: estimates from the last time step", "no discernible difference", dense_lu.estimates)),
    (Conclusion("cuSOLVER's getrf is the fastest decomposer (section 3.1.5)",
                _all(dense_lu.least_over_getrf, "least time of another decomposer / getrf's", "2.2 above 230 rows")),
     Conclusion("cuSOLVER's getrf is the most accurate decomposer (section 3.1.5)",
                _all(dense_lu.accuracy("decomposition", "decomposer", "Getrf", dense_lu.MEDIANS, (GPU,)),
                     "least median of the largest difference of another decomposer / getrf's", "56 (double)")),
     Conclusion("Of the thesis' own decomposers PCM is the fastest in all (section 3.1.5)", icm_over_pcm),
     Conclusion("ICM beats PCM on BDDC's matrices, which need few pivots (section 3.1.3)", best_pcm_over_icm),
     Conclusion("Of the thesis' own decomposers the sequential CMPP is the most accurate (section 3.1.3)",
                own_accuracy),
     Conclusion("ICM is the faster, the larger its blocks (section 3.1.3)",
                _all(narrow_over_wide("ICM"), "least time of ICM with small blocks / with the next larger ones",
                     "above 1")),
     Conclusion("PCM is the faster, the smaller its blocks (section 3.1.3)",
                _all(narrow_over_wide("PCM", widest_wins=False),
                     "least time of PCM with large blocks / with the next smaller ones", "above 1")),
     Conclusion("On random matrices ICM's sections take 2 s + p, s + p and s + 1 iterations (section 3.1.3)",
                _all(dense_lu.laws, "largest deviation from the laws", "0 or 1", at_most=True)),
     Conclusion("Where most nonzeros lie on the diagonal, ICM takes one iteration a section (section 3.1.3)",
                _all(dense_lu.border, "largest number of iterations or pivots before the border", 1, at_most=True)),
     Conclusion("Single precision makes PCM faster (section 3.1.3)", _faster_in_single("PCM(x=8)")),
     Conclusion("Single precision makes ICM faster (section 3.1.3)", _faster_in_single("ICM()")),
     Conclusion("A processing tolerance of zero is the most accurate (section 3.1.3)",
                _all(dense_lu.tolerances, "largest error with tolerance 0 / with one of 1e-10 and more", "at most 1",
                     1.1, at_most=True)),
     Conclusion("Conditional pivoting is less accurate than full pivoting (section 3.1.3)",
                _all(dense_lu.pivotings, "least median error with conditional / full pivoting", "above 1")),
     Conclusion("Without an upper bound of pivots ICM's factors may have NaN (section 3.1.3)", dense_lu.not_finite),
     Conclusion("The largest difference is no reliable measure of accuracy (section 3.1.3)", spread_of_measures),
     Conclusion("cuBLAS' trsm is the fastest solver (section 3.1.4)", fastest_solver),
     Conclusion("The sequential solver beats the iterative one in all (section 3.1.4)",
                dense_lu.sequential_over_iterative),
     Conclusion("The iterative solver is the faster, the smaller its blocks (section 3.1.4)",
                _all(narrow_over_wide("IS", "solver", widest_wins=False),
                     "least time of IS with large blocks / with the next smaller ones", "above 1")),
     Conclusion("getrs is the most accurate solver (section 3.1.4)",
                _all(dense_lu.accuracy("solution", "solver", "Getrs", dense_lu.SOLVER_MEDIANS, (GPU,)),
                     "least median of the largest difference of another solver / getrs'", "475 (double)")),
     Conclusion("The iterative solver gives invalid results for some systems (section 3.1.4)", dense_lu.invalid),
     Conclusion("In BDDC all exact decomposers take equal iterations (section 3.2.3)", bddc_cube.same_iterations),
     Conclusion("In BDDC iterations grow with ICM's tolerance (section 3.2.3)", bddc_cube.more_iterations),
     Conclusion("A tolerance makes BDDC's setup faster (section 3.2.3)", bddc_cube.faster_setups),
     Conclusion("What a tolerance saves in the setup outweighs its iterations (section 3.2.3)", bddc_cube.outweighed),
     Conclusion("Of the thesis' own decomposers ICM is the fastest in BDDC (section 3.2.3)", bddc_cube.icm_before_pcm),
     Conclusion("ICM's largest blocks are the fastest in BDDC (section 3.2.3)", bddc_cube.wide_in_bddc),
     Conclusion("MAGMA is faster than cuSOLVER for small H/h, slower for large (section 3.2.3)", magma_on_large),
     Conclusion("BDDC is the fastest with cuSOLVER's getrf (sections 3.2.3 and 3.4)", bddc_cube.library_in_bddc),
     Conclusion("ICM with a tolerance of 1 reaches 90 % of the library's speed (conclusion)", bddc_cube.nine_tenths),
     Conclusion("The last time step's factors are no better an estimate than the matrix (section 3.3)",
                dense_lu.no_better_estimate)), draw)
