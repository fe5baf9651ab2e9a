# Builds without CMake, as docs/c-and-fortran.md says. PREFIX is where Tasuki is installed; mpicc is on PATH.
set -eu

mpicc -std=c99 laplace.c -I$PREFIX/include -L$PREFIX/lib -Wl,-rpath,$PREFIX/lib -ltasuki -o laplace_c

test -d $PREFIX/include/tasuki/fortran || exit 0

gfortran laplace.f90 -I$PREFIX/include/tasuki/fortran -L$PREFIX/lib -Wl,-rpath,$PREFIX/lib \
  -ltasuki_fortran -ltasuki -o laplace_fortran
