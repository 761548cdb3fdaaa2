/* GMRES(30) with ILU(0) of each rank's diagonal block in PETSc: the CPU baseline of `swell bench block-gmres --petsc`.
 *
 *     mpicc -O2 petsc_bjacobi.c -o petsc_bjacobi $(pkg-config --cflags --libs PETSc)
 *     mpiexec -n 4 ./petsc_bjacobi -f system.petsc -block 4 -rtol 1e-5 -maxiter 300
 *
 * The file has a matrix and a right-hand side in PETSc's binary form. The matrix is BAIJ, AIJ for blocks of
 * 1. The preconditioner acts from the right, and the start is zero. Two iterations warm up. The steps of a restart, 31
 * applications of the preconditioner, are timed on each rank. Rank 0 prints a line of JSON. */
#include <petscksp.h>

#define RESTART 30
#define WARM_UP 2

static double seconds_of_a_restart(PC pc, Vec from, Vec to)
{
  PetscLogDouble begin, end;
  PetscBarrier(NULL);
  PetscTime(&begin);
  for (int k = 0; k <= RESTART; k++) PCApply(pc, from, to);
  PetscTime(&end);
  return end - begin;
}

int main(int argc, char **argv)
{
  char           path[PETSC_MAX_PATH_LEN];
  PetscInt       block = 1, most = 300, iterations = 0;
  PetscReal      rtol = 1e-5, norm, of_b;
  PetscMPIInt    ranks, rank;
  PetscBool      given;
  PetscViewer    file;
  PetscLogDouble begin, middle = 0, end = 0, taken;
  Mat            A;
  Vec            b, x, r;
  KSP            ksp;
  PC             pc;
  KSPConvergedReason reason = KSP_CONVERGED_ITERATING;

  PetscCall(PetscInitialize(&argc, &argv, NULL, NULL));
  PetscCallMPI(MPI_Comm_size(PETSC_COMM_WORLD, &ranks));
  PetscCallMPI(MPI_Comm_rank(PETSC_COMM_WORLD, &rank));
  PetscCall(PetscOptionsGetString(NULL, NULL, "-f", path, sizeof(path), &given));
  PetscCheck(given, PETSC_COMM_WORLD, PETSC_ERR_USER_INPUT, "-f FILE: expected a system in PETSc's binary form");
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-block", &block, NULL));
  PetscCall(PetscOptionsGetInt(NULL, NULL, "-maxiter", &most, NULL));
  PetscCall(PetscOptionsGetReal(NULL, NULL, "-rtol", &rtol, NULL));

  PetscCall(PetscViewerBinaryOpen(PETSC_COMM_WORLD, path, FILE_MODE_READ, &file));
  PetscCall(MatCreate(PETSC_COMM_WORLD, &A));
  PetscCall(MatSetType(A, block > 1 ? MATBAIJ : MATAIJ));
  PetscCall(MatSetBlockSize(A, block));
  PetscCall(MatLoad(A, file));
  PetscCall(MatCreateVecs(A, &x, &b));
  PetscCall(VecLoad(b, file));
  PetscCall(PetscViewerDestroy(&file));
  PetscCall(VecDuplicate(b, &r));

  PetscCall(KSPCreate(PETSC_COMM_WORLD, &ksp));
  PetscCall(KSPSetOperators(ksp, A, A));
  PetscCall(KSPSetType(ksp, KSPGMRES));
  PetscCall(KSPGMRESSetRestart(ksp, RESTART));
  PetscCall(KSPSetPCSide(ksp, PC_RIGHT));
  PetscCall(KSPSetNormType(ksp, KSP_NORM_UNPRECONDITIONED));
  PetscCall(KSPGetPC(ksp, &pc));
  PetscCall(PCSetType(pc, PCBJACOBI)); /* a block a rank, ILU(0) in it: PETSc's defaults */
  PetscCall(KSPSetFromOptions(ksp));
  PetscCall(PetscTime(&begin));
  PetscCall(KSPSetUp(ksp));
  PetscCall(KSPSetUpOnBlocks(ksp));
  PetscCall(PetscTime(&end));
  double setup = end - begin, own, sums[3];
  for (int k = 0; k < 2; k++) {
    PetscCall(KSPSetTolerances(ksp, rtol, PETSC_DEFAULT, PETSC_DEFAULT, k ? most : WARM_UP));
    PetscCall(VecSet(x, 0));
    PetscCall(PetscBarrier(NULL));
    PetscCall(PetscTime(&middle));
    PetscCall(KSPSolve(ksp, b, x));
    PetscCall(PetscTime(&end));
  }
  taken = end - middle;
  PetscCall(KSPGetIterationNumber(ksp, &iterations));
  PetscCall(KSPGetConvergedReason(ksp, &reason));
  PetscCall(MatMult(A, x, r));
  PetscCall(VecAYPX(r, -1, b));
  PetscCall(VecNorm(r, NORM_2, &norm));
  PetscCall(VecNorm(b, NORM_2, &of_b));

  own = seconds_of_a_restart(pc, b, x);
  MPI_Reduce(&own, &sums[0], 1, MPI_DOUBLE, MPI_MIN, 0, PETSC_COMM_WORLD);
  MPI_Reduce(&own, &sums[1], 1, MPI_DOUBLE, MPI_MAX, 0, PETSC_COMM_WORLD);
  MPI_Reduce(&own, &sums[2], 1, MPI_DOUBLE, MPI_SUM, 0, PETSC_COMM_WORLD);
  if (rank == 0)
    printf("{\"ranks\": %d, \"iterations\": %d, \"reason\": \"%s\", \"seconds\": %.6g, \"setup_seconds\": %.6g, "
           "\"residual\": %.4g, \"least\": %.6g, \"largest\": %.6g, \"mean\": %.6g}\n",
           ranks, (int)iterations, reason > 0 ? "CONVERGED" : KSPConvergedReasons[reason], taken, setup,
           (double)(norm / of_b), sums[0], sums[1], sums[2] / ranks);
  PetscCall(MatDestroy(&A));
  PetscCall(VecDestroy(&b));
  PetscCall(VecDestroy(&x));
  PetscCall(VecDestroy(&r));
  PetscCall(KSPDestroy(&ksp));
  PetscCall(PetscFinalize());
  return 0;
}
