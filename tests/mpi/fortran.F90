! A halo exchange in Fortran as others write it, by MPI alone: with -DTASUKI_F08 by module mpi_f08, with -DTASUKI_MODULE by
! module mpi, else by mpif.h. What each rank has received is written to a file.
!   fortran FILE
#ifdef TASUKI_F08
#define A_TYPE type(MPI_Datatype)
#define A_REQUEST type(MPI_Request)
#define A_COMM type(MPI_Comm)
#define A_STATUS(name) type(MPI_Status) :: name
#define STATUSES(name, n) type(MPI_Status) :: name(n)
#else
#define A_TYPE integer
#define A_REQUEST integer
#define A_COMM integer
#define A_STATUS(name) integer :: name(MPI_STATUS_SIZE)
#define STATUSES(name, n) integer :: name(MPI_STATUS_SIZE, n)
#endif
program halo
#ifdef TASUKI_F08
  use mpi_f08
#elif defined(TASUKI_MODULE)
  use mpi
#endif
  implicit none
#if !defined(TASUKI_F08) && !defined(TASUKI_MODULE)
  include 'mpif.h'
#endif
  integer, parameter :: n = 40, side = n + 2
  double precision :: field(0:n + 1, 0:n + 1, 0:n + 1)
  integer :: rank, ranks, left, right, error, round, direction, way, at(3), part(3), got, provided
  logical :: done
  character(len=200) :: file, suffix
  integer(kind=MPI_ADDRESS_KIND) :: address
  A_TYPE :: out_low, out_high, in_low, in_high, absolute
  A_REQUEST :: requests(4), one(1)
  A_COMM :: apart
  A_STATUS(status)
  STATUSES(statuses, 4)

  call MPI_Init_thread(MPI_THREAD_FUNNELED, provided, error)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, error)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, error)
  call MPI_Comm_dup(MPI_COMM_WORLD, apart, error) ! for receives from anybody
  left = modulo(rank - 1, ranks)
  right = modulo(rank + 1, ranks)
  call get_command_argument(1, file)
  write (suffix, '(i0)') rank
  open (unit=10, file=trim(file)//'.'//trim(suffix), action='write', status='replace')

  do round = 1, 36
    direction = modulo(round, 3) + 1
    way = modulo(round, 6)
    call fill(round)
    out_low = face(1, direction)
    out_high = face(n, direction)
    in_low = face(0, direction)
    in_high = face(n + 1, direction)
    got = -1
    select case (way)
    case (0) ! non-blocking, all four at once
      call MPI_Irecv(field, 1, in_low, left, 7, MPI_COMM_WORLD, requests(1), error)
      call MPI_Irecv(field, 1, in_high, right, 8, MPI_COMM_WORLD, requests(2), error)
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call MPI_Isend(field, 1, out_high, right, 7, MPI_COMM_WORLD, requests(3), error)
      call MPI_Issend(field, 1, out_low, left, 8, MPI_COMM_WORLD, requests(4), error)
      call MPI_Waitall(4, requests, statuses, error)
#ifdef TASUKI_F08
      call MPI_Get_elements(statuses(1), MPI_DOUBLE_PRECISION, got, error)
#else
      call MPI_Get_elements(statuses(:, 1), MPI_DOUBLE_PRECISION, got, error)
#endif
    case (1) ! both ways in one call
      call MPI_Sendrecv(field, 1, out_high, right, 3, field, 1, in_low, left, 3, MPI_COMM_WORLD, status, error)
      call MPI_Get_elements(status, MPI_DOUBLE_PRECISION, got, error)
      call MPI_Sendrecv(field, 1, out_low, left, 4, field, 1, in_high, right, 4, MPI_COMM_WORLD, MPI_STATUS_IGNORE, error)
    case (2) ! persistent, started twice
      call MPI_Recv_init(field, 1, in_low, left, 5, MPI_COMM_WORLD, requests(1), error)
      call MPI_Recv_init(field, 1, in_high, right, 6, MPI_COMM_WORLD, requests(2), error)
      call MPI_Send_init(field, 1, out_high, right, 5, MPI_COMM_WORLD, requests(3), error)
      call MPI_Send_init(field, 1, out_low, left, 6, MPI_COMM_WORLD, requests(4), error)
      call MPI_Startall(4, requests, error)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
      call fill(round + 100)
      call MPI_Startall(4, requests, error)
      call MPI_Waitall(4, requests, MPI_STATUSES_IGNORE, error)
      do provided = 1, 4
        call MPI_Request_free(requests(provided), error)
      end do
    case (3) ! a receive that is posted, and a blocking send
      call MPI_Irecv(field, 1, in_low, left, 7, MPI_COMM_WORLD, requests(1), error)
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call MPI_Send(field, 1, out_high, right, 7, MPI_COMM_WORLD, error)
      call MPI_Wait(requests(1), status, error)
      call MPI_Get_elements(status, MPI_DOUBLE_PRECISION, got, error)
    case (4) ! tested until it is there, from anybody
      call MPI_Irecv(field, 1, in_high, MPI_ANY_SOURCE, 9, apart, one(1), error)
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call MPI_Isend(field, 1, out_low, left, 9, apart, requests(1), error)
      done = .false.
      do while (.not. done)
        call MPI_Testall(1, one, done, MPI_STATUSES_IGNORE, error)
      end do
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
    case (5) ! by absolute addresses
      call MPI_Get_address(field, address, error)
      call MPI_Type_create_hindexed_block(1, 1, [address], out_high, absolute, error)
      call MPI_Type_commit(absolute, error)
      call MPI_Irecv(field, 1, in_low, left, 2, MPI_COMM_WORLD, requests(1), error)
      call MPI_Barrier(MPI_COMM_WORLD, error)
      call MPI_Send(MPI_BOTTOM, 1, absolute, right, 2, MPI_COMM_WORLD, error)
      call MPI_Wait(requests(1), MPI_STATUS_IGNORE, error)
      call MPI_Type_free(absolute, error)
    end select
    call MPI_Type_free(out_low, error)
    call MPI_Type_free(out_high, error)
    call MPI_Type_free(in_low, error)
    call MPI_Type_free(in_high, error)
    write (10, '(a,i0,a,i0,a,es24.16,a,es24.16)') 'round ', round, ' got ', got, ' sum ', sum(field), ' weighed ', weighed()
  end do
  close (10)
  call MPI_Comm_free(apart, error)
  call MPI_Finalize(error)

contains

  subroutine fill(seed)
    integer, intent(in) :: seed
    integer :: x, y, z
    field = -1
    do z = 1, n
      do y = 1, n
        do x = 1, n
          field(x, y, z) = rank * 1d6 + seed * 1d3 + x + 50 * y + 2500 * z
        end do
      end do
    end do
  end subroutine

  ! The plane at `place` across `across`, of interior numbers.
  function face(place, across) result(plane)
    integer, intent(in) :: place, across
    A_TYPE :: plane
    at = 1
    part = n
    at(across) = place
    part(across) = 1
    call MPI_Type_create_subarray(3, [side, side, side], part, at, MPI_ORDER_FORTRAN, MPI_DOUBLE_PRECISION, plane, error)
    call MPI_Type_commit(plane, error)
  end function

  double precision function weighed()
    integer :: x, y, z
    weighed = 0
    do z = 0, n + 1
      do y = 0, n + 1
        do x = 0, n + 1
          weighed = weighed + field(x, y, z) * modulo(x + 3 * y + 7 * z, 11)
        end do
      end do
    end do
  end function

end program
