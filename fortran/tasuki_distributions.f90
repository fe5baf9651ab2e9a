! What redistributions take (tasuki_redistribute_create of tasuki_making): how global arrays lie on ranks, and a rank's
! memory of them. Dimensions are in Fortran's order, the first is contiguous in memory. Indices count from 1, ranks
! from 0.
module tasuki_distributions
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_structs
  use tasuki_base
  implicit none
  private

  integer, parameter, public :: tasuki_block = 0, tasuki_cuts = 1, tasuki_cyclic = 2, tasuki_replicated = 3

  ! How the indices of a dimension lie on the ranks of a dimension of the process grid: tasuki_block: blocks, the first
  ! ones an index longer where the extent is no multiple; tasuki_cuts: blocks between cuts; tasuki_cyclic: blocks of
  ! `width` indices, dealt out in turn; tasuki_replicated: each rank has all indices.
  type, public :: tasuki_dimension
    integer :: ranks = 1                        ! 1: the dimension is not split
    integer :: kind = tasuki_block
    integer(int64) :: width = 1                 ! of tasuki_cyclic
    integer(int64), allocatable :: firsts(:)    ! of tasuki_cuts: the first index of each rank, then the extent + 1
  end type

  ! One side of a redistribution: the global array, how it lies on ranks, and which section of it is meant. A rank has
  ! the product of what the dimensions give it, as one local array. Lists have an entry for each dimension.
  type, public :: tasuki_distributed
    integer(int64), allocatable :: extents(:) ! of the global array
    type(tasuki_dimension), allocatable :: dims(:)
    integer, allocatable :: ranks(:) ! of the process grid, the first dimension fastest; not allocated: 0, 1, ...
    ! The section: its first index, how many, and from one to the next; counts not allocated: the whole array.
    integer(int64), allocatable :: first(:), counts(:), steps(:)
  end type

  ! An array that moves: memory of this rank, of the host or of GPUs, one kind on all ranks.
  type, public :: tasuki_moved_array
    integer(int64) :: cell_bytes = 8 ! of a cell
    ! c_loc of the first cell of the local array before, and after; c_null_ptr on a rank that has none.
    type(c_ptr) :: source = c_null_ptr
    type(c_ptr) :: target = c_null_ptr
    ! Bytes from a cell to the next one in each dimension; not allocated: the local array is contiguous.
    integer(int64), allocatable :: source_strides(:)
    integer(int64), allocatable :: target_strides(:)
    character(:), allocatable :: name ! for plans and errors, the same on all ranks; not allocated: 'array'
  end type

  ! What C's structs point to.
  type :: kept_firsts
    integer(c_int64_t), allocatable :: cuts(:)
  end type
  type, public :: kept_distributed
    type(c_distributed) :: struct
    integer(c_int64_t), allocatable :: extents(:), widths(:), starts(:), counts(:), steps(:)
    integer(c_int), allocatable :: split(:), kinds(:), ranks(:)
    type(kept_firsts), allocatable :: firsts(:)
    type(c_ptr), allocatable :: cuts(:)
  end type
  type :: kept_array
    integer(c_int64_t), allocatable :: source_strides(:), target_strides(:)
    character(kind=c_char), allocatable :: letters(:)
  end type
  type, public :: kept_arrays
    type(c_redistribute_array), allocatable :: structs(:)
    type(kept_array), allocatable :: arrays(:)
  end type
  type, public :: kept_axes
    integer(c_int), allocatable :: axes(:)
  end type

  ! For the other modules of this library.
  public :: distributed_fits, arrays_fit, axes_fit, set_distributed, set_arrays, set_axes

contains

  ! Whether all lists have an entry for each dimension; if not, the call ends.
  logical function distributed_fits(call, name, side, stat, errmsg) result(fit)
    character(*), intent(in) :: call, name
    type(tasuki_distributed), intent(in) :: side
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    character(:), allocatable :: wrong
    integer :: n, d
    wrong = ''
    n = 0
    if (allocated(side%extents)) n = size(side%extents)
    if (n < 1 .or. n > max_dims) then
      wrong = 'extents needs 1 to 7 entries'
    else if (.not. allocated(side%dims)) then
      wrong = 'dims is not allocated'
    else if (size(side%dims) /= n) then
      wrong = 'dims needs an entry for each dimension'
    else
      do d = 1, n
        if (side%dims(d)%kind /= tasuki_cuts) cycle
        if (.not. allocated(side%dims(d)%firsts)) then
          wrong = 'firsts of a dimension with cuts is not allocated'
        else if (size(side%dims(d)%firsts) /= side%dims(d)%ranks + 1) then
          wrong = 'firsts of a dimension with cuts needs an entry for each rank, and the extent + 1'
        end if
      end do
    end if
    if (wrong == '' .and. &
        .not. (list_fits(side%first, n) .and. list_fits(side%counts, n) .and. list_fits(side%steps, n))) &
        wrong = 'first, counts and steps need an entry for each dimension'
    if (wrong == '' .and. (allocated(side%first) .or. allocated(side%steps)) .and. .not. allocated(side%counts)) &
        wrong = 'a section needs counts'
    fit = wrong == ''
    if (.not. fit) call finish_here(tasuki_bad_argument, call//': '//name//': '//wrong, stat, errmsg)
  end function

  logical function arrays_fit(call, arrays, source, target, stat, errmsg) result(fit)
    character(*), intent(in) :: call
    type(tasuki_moved_array), intent(in) :: arrays(:)
    type(tasuki_distributed), intent(in) :: source, target
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: a
    fit = .true.
    do a = 1, size(arrays)
      fit = fit .and. list_fits(arrays(a)%source_strides, size(source%extents)) .and. &
          list_fits(arrays(a)%target_strides, size(target%extents))
    end do
    if (.not. fit) call finish_here(tasuki_bad_argument, &
        call//': source_strides and target_strides of an array need an entry for each dimension', stat, errmsg)
  end function

  logical function axes_fit(call, axes, side, stat, errmsg) result(fit)
    character(*), intent(in) :: call
    integer, intent(in), optional :: axes(:)
    type(tasuki_distributed), intent(in) :: side
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    fit = .true.
    if (present(axes)) fit = size(axes) == size(side%extents)
    if (.not. fit) &
        call finish_here(tasuki_bad_argument, call//': axes needs an entry for each dimension', stat, errmsg)
  end function

  logical function list_fits(list, n)
    integer(int64), allocatable, intent(in) :: list(:)
    integer, intent(in) :: n
    list_fits = .true.
    if (allocated(list)) list_fits = size(list) == n
  end function

  ! A side for C, which lives as long as `kept`; C's dimensions begin with the last, and its indices with 0.
  subroutine set_distributed(kept, side)
    type(kept_distributed), target, intent(inout) :: kept
    type(tasuki_distributed), intent(in) :: side
    integer :: n, d
    n = size(side%extents)
    kept%extents = side%extents(n:1:-1)
    kept%split = int(side%dims(n:1:-1)%ranks, c_int)
    kept%kinds = int(side%dims(n:1:-1)%kind, c_int)
    kept%widths = side%dims(n:1:-1)%width
    allocate (kept%firsts(n), kept%cuts(n))
    kept%cuts = c_null_ptr
    do d = 1, n
      if (allocated(side%dims(n + 1 - d)%firsts)) &
          call set_list(kept%cuts(d), kept%firsts(d)%cuts, side%dims(n + 1 - d)%firsts - 1)
    end do
    kept%struct%ndims = int(n, c_int)
    kept%struct%extents = c_loc(kept%extents)
    kept%struct%split = c_loc(kept%split)
    kept%struct%kinds = c_loc(kept%kinds)
    kept%struct%widths = c_loc(kept%widths)
    kept%struct%cuts = c_loc(kept%cuts)
    if (allocated(side%ranks)) then
      kept%ranks = [int(side%ranks, c_int), -1_c_int] ! an address even of none
      kept%struct%rank_count = size(side%ranks, kind=c_int)
      kept%struct%ranks = c_loc(kept%ranks)
    end if
    if (allocated(side%first)) call set_list(kept%struct%starts, kept%starts, side%first(n:1:-1) - 1)
    if (allocated(side%counts)) call set_list(kept%struct%counts, kept%counts, side%counts(n:1:-1))
    if (allocated(side%steps)) call set_list(kept%struct%steps, kept%steps, side%steps(n:1:-1))
  end subroutine

  ! Arrays for C, which live as long as `kept`.
  subroutine set_arrays(kept, arrays)
    type(kept_arrays), target, intent(inout) :: kept
    type(tasuki_moved_array), intent(in) :: arrays(:)
    integer :: a
    allocate (kept%structs(size(arrays)), kept%arrays(size(arrays)))
    do a = 1, size(arrays)
      kept%structs(a)%cell_bytes = arrays(a)%cell_bytes
      kept%structs(a)%source = arrays(a)%source
      kept%structs(a)%target = arrays(a)%target
      if (allocated(arrays(a)%source_strides)) &
          call set_list(kept%structs(a)%source_strides, kept%arrays(a)%source_strides, &
          arrays(a)%source_strides(size(arrays(a)%source_strides):1:-1))
      if (allocated(arrays(a)%target_strides)) &
          call set_list(kept%structs(a)%target_strides, kept%arrays(a)%target_strides, &
          arrays(a)%target_strides(size(arrays(a)%target_strides):1:-1))
      if (allocated(arrays(a)%name)) kept%structs(a)%name = c_text(kept%arrays(a)%letters, arrays(a)%name)
    end do
  end subroutine

  ! The permutation for C, which lives as long as `kept`; null if there is none.
  type(c_ptr) function set_axes(kept, axes) result(address)
    type(kept_axes), target, intent(inout) :: kept
    integer, intent(in), optional :: axes(:)
    address = c_null_ptr
    if (.not. present(axes)) return
    kept%axes = int(size(axes) - axes(size(axes):1:-1), c_int)
    if (size(axes) > 0) address = c_loc(kept%axes)
  end function

  subroutine set_list(address, kept, values)
    type(c_ptr), intent(inout) :: address
    integer(c_int64_t), allocatable, target, intent(inout) :: kept(:)
    integer(int64), intent(in) :: values(:)
    kept = values
    if (size(kept) > 0) address = c_loc(kept)
  end subroutine

end module
