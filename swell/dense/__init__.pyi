# Written by docs/generate.py: type checkers and editors cannot see names that are imported lazily.
from swell.dense.crout import CM as CM
from swell.dense.factors import CroutFactors as CroutFactors
from swell.dense.factors import DoolittleFactors as DoolittleFactors
from swell.dense.gem import GEM as GEM
from swell.dense.getrf import Getrf as Getrf
from swell.dense.getrs import Getrs as Getrs
from swell.dense.iterative_crout import ICM as ICM
from swell.dense.iterative_solver import IS as IS
from swell.dense.factors import LUFactors as LUFactors
from swell.dense.factors import Metrics as Metrics
from swell.dense.parallel_crout import PCM as PCM
from swell.dense.sequential_solver import SS as SS
from swell.dense.trsm import Trsm as Trsm
from swell.dense.accuracy import decomposition_accuracy as decomposition_accuracy
from swell.dense.accuracy import solution_accuracy as solution_accuracy
from swell.dense.batch import solve_batch as solve_batch
