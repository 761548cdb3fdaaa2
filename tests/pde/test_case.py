"""OpenFOAM cases of flow: the parser of dictionaries and fields, conditions, control of time, bad cases, and
fields that are written and read again."""
from __future__ import annotations

import numpy as np
import pytest

from swell.core.errors import InputError, OutOfMemory
from swell.pde import fvm
from swell.pde.fvm.foam_dictionary import FoamDictionary
from swell.pde.fvm.foam_writer import write_field

N = 6
U = """dimensions [0 1 -1 0 0 0 0];
internalField uniform (0 0 0);
boundaryField
{
    ymax { type fixedValue; value uniform (1 0 0); }
    "(xmin|xmax|ymin)" { type noSlip; }
    "z.*" { type empty; }
}
"""
P = """dimensions [0 2 -2 0 0 0 0];
internalField uniform 0;
boundaryField { ".*" { type zeroGradient; } "z.*" { type empty; } }
"""
CONTROL = """application icoFoam; startFrom startTime; startTime 0; endTime 0.5; deltaT 0.02; writeControl timeStep;
writeInterval 5;
"""


def header(name, kind="dictionary", form="ascii"):
    return f"FoamFile\n{{\n    version 2.0;\n    format {form};\n    class {kind};\n    object {name};\n}}\n"


def put(case, place, text, kind="dictionary"):
    path = case / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(header(path.name, kind) + text)


@pytest.fixture
def cavity(tmp_path):
    """A cavity of 6 × 6 cells, for icoFoam."""
    case = tmp_path / "cavity"
    fvm.write_polymesh(fvm.box((N, N)), case)
    put(case, "0/U", U, "volVectorField")
    put(case, "0/p", P, "volScalarField")
    put(case, "constant/transportProperties", "transportModel Newtonian;\nnu [0 2 -1 0 0 0 0] 0.01;\n")
    put(case, "system/controlDict", CONTROL)
    return case


def parsed(tmp_path, text):
    put(tmp_path, "d", text)
    return FoamDictionary(tmp_path, "d").entries


def test_dictionaries(tmp_path):
    found = parsed(tmp_path, """
        // a line, with ; and { in it
        speed 2.5;  /* and
        more */ "quoted.*" { a (1 (2 3)); }
        inlet { U ($speed 0 0); deeper { again $speed; other ${speed}; } }
        copy { $inlet; U (0 0 0); up $inlet.U; }
        empty ; page "http://a/*b"; /**/
        #includeEtc "caseDicts/setConstraintTypes"
        last [0 2 -1] 4;""")
    assert found["quoted.*"] == {"a": [["1", ["2", "3"]]]} and found["empty"] == []
    assert found["page"] == ["http://a/*b"]
    assert found["inlet"]["U"] == [["2.5", "0", "0"]]
    assert found["inlet"]["deeper"] == {"again": ["2.5"], "other": ["2.5"]}
    assert found["copy"]["up"] == [["2.5", "0", "0"]]
    assert found["copy"]["U"] == [["0", "0", "0"]] and found["copy"]["deeper"]["again"] == ["2.5"]
    assert found["last"] == [["0", "2", "-1"], "4"]


@pytest.mark.parametrize("text, words", [
    ("a $nowhere;", r"\$nowhere stands for nothing"), ("a 1;\n$a;", r"\$a stands for no dictionary"),
    ('#include "initial"', 'the directive #include "initial" is not read'),
    ("a { b 1;", "the dictionary a has no end"), ("a (1 2;", "the entry a has no end"), ("a 1",
     "the entry a has no end"),
    ("a 1);", "closes a parenthesis that is not open"), ("a 1; }", "came where an entry should begin"),
    ("{ a 1; }", "came where an entry should begin"), ("#calc", "the directive #calc"), ("a", "the entry a has no end"),
    ("a 1; /* left open; b 2;", r"the comment ./\* left open; b 2;.* has no end"),
    ("f nonuniform List<scalar> 3 (1 2);", "announces 3 scalars and has 2 numbers"),
    ("f nonuniform List<vector> 1 ((1 2 x));", "'x' where a number was expected"),
    ("f nonuniform List<scalar> 2 (1 2", "list of numbers has no end"),
    (f"f nonuniform List<scalar> {'9' * 5000}{{0}};", "the count 9+... has 5000 digits"),
    ("a {" * 20_000 + "}" * 20_000, "more than 100 dictionaries lie within one another"),
    (f"a {'(' * 20_000}{')' * 20_000};", "the entry a has more than 100 parentheses"),
    ("a x;\n" + "a ($a);\n" * 20_000, r"\$a brings the words .* or nests more than 100"),
    ("a x;\n" + "a $a $a;\n" * 60, r"\$a brings the words .* to more than 1000000"),
    ("a x;\n" + "a ($a $a);\n" * 60, r"\$a brings the words .* to more than 1000000"),
    ("a $;", r"\$ stands for nothing"), ("a { $; }", r"\$ stands for nothing"),
    ("a \0;", "binary data came where text was expected")])
def test_damaged_dictionaries(tmp_path, text, words):
    with pytest.raises(InputError, match=words):
        parsed(tmp_path, text)


def test_a_count_that_no_memory_holds(tmp_path):
    with pytest.raises(OutOfMemory, match="declares 1000000000000000 times the same value"):
        parsed(tmp_path, "f nonuniform List<scalar> 1000000000000000{0};")


def test_words_that_look_like_placeholders(tmp_path):
    found = parsed(tmp_path, "a @99;  b @abc;  c @0;  d nonuniform List<scalar> 2 (1 2);")
    assert (found["a"], found["b"], found["c"]) == (["@99"], ["@abc"], ["@0"])
    np.testing.assert_array_equal(found["d"][1], [1, 2])


def test_long_lists_in_text(tmp_path):
    found = parsed(tmp_path, """a nonuniform List<vector> 2 ( (1 2 3) // first
        (4 5 -6e-1) );  b nonuniform List<scalar> 3{2.5};  c nonuniform List<vector> 2{(1 0 0)};
        d nonuniform 0();  e $a;  f nonuniform List<scalar> 0;""")
    np.testing.assert_array_equal(found["a"][1], [[1, 2, 3], [4, 5, -0.6]])
    np.testing.assert_array_equal(found["b"][1], [2.5, 2.5, 2.5])
    np.testing.assert_array_equal(found["c"][1], [[1, 0, 0], [1, 0, 0]])
    np.testing.assert_array_equal(found["e"][1], found["a"][1])
    assert found["d"] == found["f"] == ["nonuniform"]


def test_binary_lists(tmp_path):
    """Raw bytes may contain any character, such as ; } ) or //."""
    values = np.frombuffer(b"// ; } )" * 6, np.float64).reshape(2, 3)
    write_field(tmp_path, "U", "volVectorField", "[0 1 -1 0 0 0 0]", values,
                {"wall": {"type": ["fixedValue"], "value": ["nonuniform", np.array([[1.0, 2, 3]])]},
                 "a|b": {"type": ["empty"]}})
    found = FoamDictionary(tmp_path, "U").entries
    assert found["internalField"][1].tobytes() == values.tobytes()
    assert found["boundaryField"]["a|b"] == {"type": ["empty"]}
    np.testing.assert_array_equal(found["boundaryField"]["wall"]["value"][1], [[1, 2, 3]])
    content = (tmp_path / "U").read_bytes()
    (tmp_path / "U").write_bytes(content[:content.index(b"// ; }") + 20])
    with pytest.raises(InputError, match="truncated: it announces 6 numbers"):
        FoamDictionary(tmp_path, "U")


def test_a_case(cavity):
    case = fvm.read_case(cavity)
    assert (case.time, case.viscosity, case.transient, case.dt, case.end) == ("0", 0.01, True, 0.02, 0.5)
    assert case.write_every == pytest.approx(0.1) and not case.notes and not case.start.velocity.any()
    assert case.flow.solve(fvm.SIMPLE(velocity=0.9), start=case.start).converged


def test_conditions(tmp_path):
    """Every kind of condition, a nonuniform inlet, and planes of symmetry that only the mesh names."""
    mesh = fvm.box((4, 3, 2))
    kinds = {"zmin": "symmetry", "zmax": "symmetry"}
    mesh = fvm.Mesh.from_faces(mesh.points, mesh.face_ptr, mesh.face_points, mesh.owner, mesh.neighbour,
                               [fvm.Patch(p.name, p.start, p.size, kinds.get(p.name, p.kind)) for p in mesh.patches])
    case = tmp_path / "duct"
    fvm.write_polymesh(mesh, case)
    inlet = " ".join(f"({k + 1} 0 0)" for k in range(6))
    put(case, "0/U", f"""internalField uniform (1 0 0); in {{ type fixedValue; }}
        boundaryField {{ #includeEtc "caseDicts/setConstraintTypes"
            xmin {{ $in; value nonuniform List<vector> 6 ({inlet}); }}
            xmax {{ type inletOutlet; inletValue uniform (0 0 0); value $internalField; }}
            ymin {{ type movingWallVelocity; value uniform (0.5 0 0); }} ymax {{ type slip; }} }}""", "volVectorField")
    put(case, "0/p", """internalField uniform 2; boundaryField { xmax { type fixedValue; value uniform 3; }
        "xmin|ymin|ymax" { type fixedFluxPressure; } }""", "volScalarField")
    put(case, "constant/physicalProperties", "nu 0.1;")
    found = fvm.read_case(case)
    kinds = {name: type(condition).__name__ for name, condition in found.flow.velocity.items()}
    assert kinds == {"xmin": "Dirichlet", "xmax": "InletOutlet", "ymin": "Dirichlet", "ymax": "Symmetry",
                     "zmin": "Symmetry",
                     "zmax": "Symmetry"}
    np.testing.assert_array_equal(found.flow.velocity["xmin"].value[:, 0], range(1, 7))
    assert found.transient is None and found.dt is None and found.start.p[0] == 2
    solution = found.flow.solve(start=found.start)
    assert solution.converged
    found.write("7", solution)
    again = fvm.read_case(case, "latest")
    assert again.time == "7" and {n: type(c).__name__ for n, c in again.flow.velocity.items()} == kinds
    entries = FoamDictionary(case / "7", "phi").entries["boundaryField"]
    assert entries["zmin"]["type"] == ["symmetry"] and entries["xmin"]["type"] == ["calculated"]


def test_what_was_written_is_read_again(cavity):
    """A run of two halves ends where one run ends: the fluxes go on, too."""
    case = fvm.read_case(cavity)
    half, whole = (case.flow.march(fvm.PISO(dt=0.02, end=end, time="euler", momentum_rtol=1e-10, pressure_rtol=1e-10),
                                   start=case.start) for end in (0.1, 0.2))
    case.write("0.1", half)
    again = fvm.read_case(cavity, "0.1")
    np.testing.assert_array_equal(again.start.velocity, half.velocity)
    np.testing.assert_array_equal(again.start.p, half.p)
    rest = again.flow.march(fvm.PISO(dt=0.02, end=0.1, time="euler", momentum_rtol=1e-10, pressure_rtol=1e-10),
                            start=again.start)
    assert abs(rest.velocity - whole.velocity).max() < 1e-7
    through = FoamDictionary(cavity / "0.1", "phi").entries
    inside = again.mesh.neighbour.size
    np.testing.assert_array_equal(through["internalField"][1], half.fluxes[:inside])
    assert through["boundaryField"]["zmin"] == {"type": ["empty"]}
    put(cavity, "0.1/phi", "dimensions [1 0 -1 0 0 0 0]; internalField uniform 0;", "surfaceScalarField")
    with pytest.raises(InputError, match="no internalField of dimensions .0 3 -1 0 0 0 0., volume fluxes"):
        fvm.read_case(cavity, "0.1")
    put(cavity, "0.1/phi", "internalField uniform nan;", "surfaceScalarField")
    with pytest.raises(InputError, match="0.1/phi has values that are not finite"):
        fvm.read_case(cavity, "0.1")
    put(cavity, "0.1/phi", "internalField nonuniform List<scalar> 3{0};", "surfaceScalarField")
    with pytest.raises(InputError, match="has 3 numbers, and the mesh has 60 internal faces"):
        fvm.read_case(cavity, "0.1")


def test_the_start(cavity):
    for name in ("0.1", "10", "2"):
        for field, text in (("U", U), ("p", P)):
            put(cavity, f"{name}/{field}", text)
    assert fvm.read_case(cavity).time == "0" and fvm.read_case(cavity, "latest").time == "10"
    assert fvm.read_case(cavity, "2.0").time == "2"
    put(cavity, "system/controlDict", "startFrom latestTime;")
    assert fvm.read_case(cavity).time == "10"
    put(cavity, "system/controlDict", "startTime 0.1; writeControl runTime; writeInterval 3; deltaT 1;")
    case = fvm.read_case(cavity)
    assert case.time == "0.1" and case.write_every == 3 and case.end is None
    with pytest.raises(InputError, match="no folder of the time 5: there are 0, 0.1, 10, 2"):
        fvm.read_case(cavity, "5")


@pytest.mark.parametrize("place, old, new, words", [
    ("0/U", "uniform (0 0 0)", "nonuniform List<vector> 2 ((1 0 0) (1 0 0))",
     "0/U: internalField has 2 vectors, and the mesh has 36 cells: the field belongs to another mesh"),
    ("0/p", "uniform 0", "nonuniform List<scalar> 37{1}",
     "0/p: internalField has 37 numbers, and the mesh has 36 cells"),
    ("0/p", "uniform 0", "uniform (1 2)", r"internalField is uniform .1 2.: expected a number"),
    ("0/U", "uniform (0 0 0)", "uniform 3", r"internalField is uniform 3: expected a vector, such as \(1 0 0\)"),
    ("0/U", "uniform (0 0 0)", "uniform (nan 0 0)", "internalField has values that are not finite"),
    ("0/U", "uniform (0 0 0)", "constant", "internalField is 'constant': expected uniform"),
    ("0/U", "internalField uniform (0 0 0);", "", "0/U has no internalField"),
    ("0/U", "noSlip", "partialSlip",
     "patch 'xmin' has the condition partialSlip, which is not known: swell knows fixedValue, noSlip"),
    ("0/p", "zeroGradient", "totalPressure",
     "has the condition totalPressure, which is not known: swell knows fixedValue, zeroGradient"),
    ("0/U", '"(xmin|xmax|ymin)"', '"(xmin|xmax)"', "0/U has no condition for patch 'ymin': it names ymax"),
    ("0/U", "value uniform (1 0 0);", "", "patch 'ymax' has no value: expected value uniform"),
    ("0/U", "value uniform (1 0 0);", "value nonuniform List<vector> 2{(1 0 0)};",
     "has 2 vectors, and the mesh has 6 faces in patch 'ymax'"),
    ("0/U", "boundaryField", "boundary", "0/U has no boundaryField"),
    ("0/p", '".*" { type zeroGradient; }', '".*" { type fixedValue; value uniform 0; }',
     "has noSlip for U and fixedValue for p|has fixedValue for U and fixedValue for p"),
    ("0/U", "fixedValue; value uniform (1 0 0)", "zeroGradient",
     "patch 'ymax' has zeroGradient for U and zeroGradient for p"),
    ("0/U", "uniform (1 0 0)", "uniform (1 1 0)", "let .* out of the domain, and no patch is an outlet"),
    ("constant/transportProperties", "0.01", "-0.01", "nu is -0.01: expected a positive kinematic viscosity"),
    ("constant/transportProperties", "0.01", "water", "nu is .*water.*: expected a number"),
    ("constant/transportProperties", "nu [0 2 -1 0 0 0 0] 0.01;", "", "has no transportProperties with nu"),
    ("0/U", '"z.*"', '"(z+)+y"', r"0/U: the pattern .* repeats a group"),
    ("0/U", '"z.*"', f'"{"z*" * 90}y"', "0/U: the pattern .* repeats too often"),
    ("0/U", "value uniform (1 0 0);", "value { a 1; b 2; }", "value of patch 'ymax' is a dictionary"),
    ("0/U", "value uniform (1 0 0);", "velocity { a 1; } value uniform $velocity;", "is uniform .*: expected a vector"),
    ("system/controlDict", "startTime 0", "startTime (0 1)", r"has no folder of the time \(0 1\)"),
    ("system/controlDict", "deltaT 0.02", "deltaT soon", "controlDict: deltaT is 'soon': expected a number")])
def test_bad_cases(cavity, place, old, new, words):
    path = cavity / place
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))
    with pytest.raises(InputError, match=words):
        fvm.read_case(cavity)


def test_a_turbulence_model_is_refused_unless_left_out(cavity):
    put(cavity, "constant/turbulenceProperties", "simulationType RAS; RAS { model kOmegaSST; }")
    with pytest.raises(InputError, match=r"asks for RAS: swell solves laminar flow alone: give .*True \(--laminar\)"):
        fvm.read_case(cavity)
    assert "RAS" in fvm.read_case(cavity, laminar=True).notes[0]
    put(cavity, "constant/turbulenceProperties", "simulationType laminar;")
    put(cavity, "system/fvSchemes", "")
    assert fvm.read_case(cavity).notes == ["system/fvSchemes and fvSolution are not read: swell's schemes, "
                                           "relaxation and tolerances hold"]


def test_what_is_no_case(cavity, tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        fvm.read_case(tmp_path / "nowhere")
    (cavity / "0" / "p").unlink()
    with pytest.raises(InputError, match="has no file p or p.gz"):
        fvm.read_case(cavity)
    (cavity / "0").rename(cavity / "0.orig")
    with pytest.raises(InputError, match="has no folder of a time"):
        fvm.read_case(cavity)
