"""Acoustics in the frequency domain: finite elements for the Helmholtz equation, and frequency responses.

    from swell.pde import helmholtz
    mesh = helmholtz.car_cabin(size=0.1)                    # or helmholtz.read_mesh("cabin.msh"), helmholtz.box(...)
    cabin = helmholtz.Helmholtz(mesh, helmholtz.Medium(damping=0.02), {"roof": helmholtz.Impedance(2000)})
    r = cabin.response(source="firewall", ear=(0.9, 0.4, 0.9), frequencies=helmholtz.band("20:300:5"))
    r.write_csv("ear.csv"); r.plot("ear.png"); print(r)

Sign convention, everywhere: p(x, t) = Re(p(x) e^{+iωt}), SI units, amplitudes are peaks. A wave that travels along +x
is e^{−ikx}, velocity is −∇p/(iωρ), and A(ω) = K(1/ρ) − ω² M(1/ρc²) + iω B(1/Z).
"""
from swell.core.lazy import public

__getattr__, __dir__, __all__ = public(__name__, {
    "Helmholtz": "problem", "Field": "field", "Response": "frequency_response", "Sweep": "sweeping",
    "Medium": "media", "Monopole": "sources", "PlaneWave": "sources", "PML": "pml", "Modes": "modes",
    "Table": "table", "read_table": "table", "VelocityMap": "velocity_map", "read_velocity_map": "velocity_map",
    "Rigid": "conditions", "Pressure": "conditions", "Velocity": "conditions", "Impedance": "conditions",
    "Absorbing": "conditions",
    "Mesh": "meshes", "box": "structured", "read_mesh": "meshio_reader", "from_meshio": "meshio_reader",
    "band": "frequencies", "car_cabin": "cabin", "around": "exterior",
    "sweep_matrices": "own_matrices", "impulse": "sound", "write_wav": "sound", "cylinder": "tube",
    "paper_mesh": "table1", "paper_problem": "table1",
    "subdomains": "mesh_subdomains", "plane_waves": "mesh_subdomains",
})
