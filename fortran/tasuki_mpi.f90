! Contexts over a type(MPI_Comm), where the MPI has the module mpi_f08.
module tasuki_mpi
  use mpi_f08, only: MPI_Comm
  use tasuki_base
  implicit none
  private

  public :: tasuki_context_create

  interface tasuki_context_create
    module procedure context_over_type
  end interface

contains

  ! Over a duplicate of a communicator. Collective.
  subroutine context_over_type(context, comm, stat, errmsg)
    type(tasuki_context), intent(inout) :: context
    type(MPI_Comm), intent(in) :: comm
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call tasuki_context_create(context, comm%MPI_VAL, stat, errmsg)
  end subroutine

end module
