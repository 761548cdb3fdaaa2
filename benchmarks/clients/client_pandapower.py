"""pandapower's power flow; one line: ``newtonpf.spsolve = swell.scipy_like.spsolve``."""
PACKAGE = "pandapower"


def cases():
    """Its networks of 118 to 9241 buses."""
    import numpy as np
    import pandapower as pp
    import pandapower.networks as networks
    from pandapower.pypower import newtonpf
    from scipy.sparse.linalg import spsolve as scipys

    from swell.scipy_like import spsolve

    def run(net, solve):
        newtonpf.spsolve = solve
        try:
            pp.runpp(net, numba=False)
        finally:
            newtonpf.spsolve = scipys
        return np.nan_to_num(net.res_bus.vm_pu.values)

    for name in ("case118", "case1888rte", "case9241pegase"):
        net = getattr(networks, name)()
        yield name, 2 * len(net.bus), lambda n=net: run(n, scipys), lambda n=net: run(n, spsolve)
