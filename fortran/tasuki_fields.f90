! Grids and fields of the module tasuki.
!
! Dimensions are in Fortran's order: the first is contiguous in memory. Extents, splits, widths and boxes are given and
! told in that order; indices of cells count from 1, and boxes are lower:upper, both included.
module tasuki_fields
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int32, int64
  use tasuki_c
  use tasuki_base
  implicit none
  private

  ! An array of cells cut into boxes, one a rank.
  type, public :: tasuki_grid
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! An array over a grid, with a shadow for the neighbours' cells.
  type, public :: tasuki_field
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! The cells lower(d):upper(d) for d up to ndims; none if an upper is below its lower.
  type, public :: tasuki_box
    integer :: ndims = 0
    integer(int64) :: lower(max_dims) = 1, upper(max_dims) = 0
  end type

  ! Where a field's copy is, for tasuki_view.
  type, public :: tasuki_place
    logical :: found = .false.
    type(c_ptr) :: start = c_null_ptr
    integer(int64) :: stored(max_dims) = 0 ! extents of the array in memory, padding included
    integer(int64) :: cells(max_dims) = 0  ! without padding
    integer(int64) :: first(max_dims) = 1  ! lower bounds, so that owned cells begin with 1
  end type

  ! Element types.
  character(*), parameter :: sides_text = 'lower and upper need an entry for each dimension'
  integer, parameter, public :: tasuki_int32 = 3, tasuki_int64 = 4, tasuki_real32 = 9, tasuki_real64 = 10

  public :: tasuki_grid_create, tasuki_field_create, tasuki_free, tasuki_get_box, tasuki_get_split, tasuki_get_coords
  public :: tasuki_get_rank_at, tasuki_swap, tasuki_get_current, tasuki_get_boundary, tasuki_get_interior
  public :: tasuki_get_address, tasuki_upload, tasuki_download
  public :: locate, wrap, widths_of, sides_fit, sides_text ! for the other modules of this library

  interface tasuki_grid_create
    module procedure grid_create_32, grid_create_64
  end interface
  interface tasuki_free
    module procedure grid_free, field_free
  end interface
  interface tasuki_get_box
    module procedure grid_box, field_box
  end interface

contains

  ! A grid of so many cells in each dimension (1 to 7) over all ranks of the context. split: ranks in each dimension, 0
  ! to be chosen. periodic: for each dimension. reorder: as mapping 'hops'. mapping: which rank has which box: 'column'
  ! (rank order, the first dimension fastest; the default), 'row' (the last one fastest), 'blocks' (each island has a
  ! block of boxes), 'hops' (the busiest link of the machine's networks carries the fewest bytes) or 'given'. given: of
  ! mapping 'given' the rank of each box, the first dimension fastest. Collective; the same arguments on all ranks.
  subroutine grid_create_64(grid, context, extents, split, periodic, reorder, mapping, given, stat, errmsg)
    type(tasuki_grid), intent(inout) :: grid
    type(tasuki_context), intent(in) :: context
    integer(int64), intent(in) :: extents(:)
    integer, intent(in), optional :: split(:)
    logical, intent(in), optional :: periodic(:), reorder
    character(*), intent(in), optional :: mapping
    integer, intent(in), optional :: given(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer(c_int), target :: ranks(max_dims), wraps(max_dims)
    integer(c_int), allocatable, target :: of_boxes(:)
    character(kind=c_char), allocatable, target :: letters(:)
    integer(c_int64_t) :: cells(max_dims)
    type(c_grid_options) :: options
    integer :: n
    n = size(extents)
    cells = 0
    cells(:min(n, max_dims)) = extents(n:n - min(n, max_dims) + 1:-1)
    options%size = c_sizeof(options)
    if (present(split)) then
      if (size(split) /= n) then
        call finish_here(tasuki_bad_argument, 'tasuki_grid_create: split needs an entry for each dimension', stat, errmsg)
        return
      end if
      ranks(:n) = int(split(n:1:-1), c_int)
      options%split = c_loc(ranks)
    end if
    if (present(periodic)) then
      if (size(periodic) /= n) then
        call finish_here(tasuki_bad_argument, 'tasuki_grid_create: periodic needs an entry for each dimension', stat, &
            errmsg)
        return
      end if
      wraps(:n) = merge(1_c_int, 0_c_int, periodic(n:1:-1))
      options%periodic = c_loc(wraps)
    end if
    options%reorder = flag(reorder, 0)
    if (present(mapping)) then
      select case (mapping) ! C counts dimensions from the other end
      case ('row')
        options%mapping = c_text(letters, 'column')
      case ('column')
        options%mapping = c_text(letters, 'row')
      case default
        options%mapping = c_text(letters, mapping)
      end select
    end if
    if (present(given)) then
      if (size(given) /= tasuki_size(context)) then
        call finish_here(tasuki_bad_argument, 'tasuki_grid_create: given needs an entry for each rank', stat, errmsg)
        return
      end if
      of_boxes = int(given, c_int)
      options%given = c_loc(of_boxes)
    end if
    call finish(c_grid_create(context%handle, int(n, c_int), cells, options, grid%handle), stat, errmsg)
  end subroutine

  subroutine grid_create_32(grid, context, extents, split, periodic, reorder, mapping, given, stat, errmsg)
    type(tasuki_grid), intent(inout) :: grid
    type(tasuki_context), intent(in) :: context
    integer(int32), intent(in) :: extents(:)
    integer, intent(in), optional :: split(:)
    logical, intent(in), optional :: periodic(:), reorder
    character(*), intent(in), optional :: mapping
    integer, intent(in), optional :: given(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call grid_create_64(grid, context, int(extents, int64), split, periodic, reorder, mapping, given, stat, errmsg)
  end subroutine

  subroutine grid_free(grid, stat, errmsg)
    type(tasuki_grid), intent(inout) :: grid
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_grid_free(grid%handle), stat, errmsg)
  end subroutine

  ! The cells of a rank, this one unless given, in global indices. Local.
  subroutine grid_box(grid, box, rank, stat, errmsg)
    type(tasuki_grid), intent(in) :: grid
    type(tasuki_box), intent(out) :: box
    integer, intent(in), optional :: rank
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_grid_info) :: info
    integer(c_int) :: status
    info%size = c_sizeof(info)
    status = c_grid_get_info(grid%handle, info)
    if (status == tasuki_ok .and. present(rank)) status = c_grid_owned(grid%handle, int(rank, c_int), info%owned)
    if (status == tasuki_ok) box = box_from(info%owned)
    call finish(status, stat, errmsg)
  end subroutine

  ! Ranks in each dimension. Local.
  subroutine tasuki_get_split(grid, split, stat, errmsg)
    type(tasuki_grid), intent(in) :: grid
    integer, allocatable, intent(out) :: split(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_grid_info) :: info
    info%size = c_sizeof(info)
    call finish(c_grid_get_info(grid%handle, info), stat, errmsg)
    split = int(info%split(info%ndims:1:-1))
  end subroutine

  ! Where a rank is in the grid of ranks, counted from 0 in each dimension. Local.
  subroutine tasuki_get_coords(grid, rank, coords, stat, errmsg)
    type(tasuki_grid), intent(in) :: grid
    integer, intent(in) :: rank
    integer, allocatable, intent(out) :: coords(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_grid_info) :: info
    integer(c_int) :: at(max_dims), status
    info%size = c_sizeof(info)
    status = c_grid_get_info(grid%handle, info)
    at = 0
    if (status == tasuki_ok) status = c_grid_coords(grid%handle, int(rank, c_int), at)
    coords = int(at(info%ndims:1:-1))
    call finish(status, stat, errmsg)
  end subroutine

  subroutine tasuki_get_rank_at(grid, coords, rank, stat, errmsg)
    type(tasuki_grid), intent(in) :: grid
    integer, intent(in) :: coords(:)
    integer, intent(out) :: rank
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_grid_info) :: info
    integer(c_int) :: status, found
    info%size = c_sizeof(info)
    rank = -1
    found = -1
    status = c_grid_get_info(grid%handle, info)
    if (status == tasuki_ok) then
      if (size(coords) /= info%ndims) then
        call finish_here(tasuki_bad_argument, 'tasuki_get_rank_at: coords needs an entry for each dimension', stat, errmsg)
        return
      end if
      status = c_grid_rank_at(grid%handle, int(coords(info%ndims:1:-1), c_int), found)
    end if
    call finish(status, stat, errmsg)
    rank = int(found)
  end subroutine

  ! An array over the grid, of a type from above, in memory of Tasuki's, zero-filled. shadow: its width on every side (1);
  ! or lower and upper, an entry a dimension. copies: 1, or 2 that tasuki_swap exchanges. pad: extra elements at the end
  ! of the first dimension. device: in the memory of this rank's GPU. Collective.
  subroutine tasuki_field_create(field, grid, type, name, shadow, lower, upper, copies, pad, device, stat, errmsg)
    type(tasuki_field), intent(inout) :: field
    type(tasuki_grid), intent(in) :: grid
    integer, intent(in) :: type
    character(*), intent(in), optional :: name
    integer, intent(in), optional :: shadow, lower(:), upper(:), copies, pad
    logical, intent(in), optional :: device
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_options) :: options
    type(c_grid_info) :: info
    character(kind=c_char), allocatable, target :: letters(:)
    info%size = c_sizeof(info)
    if (c_grid_get_info(grid%handle, info) == tasuki_ok .and. .not. sides_fit(info%ndims, lower, upper)) then
      call finish_here(tasuki_bad_argument, 'tasuki_field_create: '//sides_text, stat, errmsg)
      return
    end if
    options%size = c_sizeof(options)
    options%name = c_text(letters, name)
    options%shadow = widths_of(shadow, lower, upper)
    if (present(copies)) options%copies = int(copies, c_int)
    if (present(pad)) options%pad = int(pad, c_int64_t)
    options%memory = flag(device, 0)
    call finish(c_field_create(grid%handle, int(type, c_int), options, field%handle), stat, errmsg)
  end subroutine

  ! Fails while an operation uses the field. Local.
  subroutine field_free(field, stat, errmsg)
    type(tasuki_field), intent(inout) :: field
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_field_free(field%handle), stat, errmsg)
  end subroutine

  ! This rank's cells in global indices. Local.
  subroutine field_box(field, box, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    type(tasuki_box), intent(out) :: box
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_info) :: info
    info%size = c_sizeof(info)
    call finish(c_field_get_info(field%handle, info), stat, errmsg)
    box = box_from(info%owned)
  end subroutine

  ! The next copy becomes the one that is shown. Local.
  subroutine tasuki_swap(field, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_field_swap(field%handle), stat, errmsg)
  end subroutine

  ! Which copy is shown, 1 or 2. Local.
  subroutine tasuki_get_current(field, copy, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    integer, intent(out) :: copy
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_info) :: info
    info%size = c_sizeof(info)
    call finish(c_field_get_info(field%handle, info), stat, errmsg)
    copy = int(info%current) + 1
  end subroutine

  ! Where a copy begins in memory, shadow included: the one that is shown unless given. Local.
  subroutine tasuki_get_address(field, address, copy, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    type(c_ptr), intent(out) :: address
    integer, intent(in), optional :: copy
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_info) :: info
    integer(c_int) :: status
    address = c_null_ptr
    info%size = c_sizeof(info)
    status = c_field_get_info(field%handle, info)
    if (present(copy)) info%current = int(copy - 1, c_int32_t)
    if (status == tasuki_ok) status = c_field_copy_data(field%handle, info%current, address)
    call finish(status, stat, errmsg)
  end subroutine

  ! All bytes of the copy that is shown, shadow and padding included, from or to host memory at an address. Local.
  subroutine tasuki_upload(field, host, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    type(c_ptr), intent(in) :: host
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_field_upload(field%handle, host), stat, errmsg)
  end subroutine

  subroutine tasuki_download(field, host, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    type(c_ptr), intent(in) :: host
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_field_download(field%handle, host), stat, errmsg)
  end subroutine

  ! The owned cells within width (1), or lower and upper, of a side, in disjoint boxes of indices as tasuki_view has
  ! them: what must be computed before the neighbours can be served. Local.
  subroutine tasuki_get_boundary(field, boxes, width, lower, upper, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    type(tasuki_box), allocatable, intent(out) :: boxes(:)
    integer, intent(in), optional :: width, lower(:), upper(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_info) :: info
    type(c_box) :: found(2 * max_dims)
    integer(c_int) :: status, count
    integer :: b
    info%size = c_sizeof(info)
    count = 0
    status = c_field_get_info(field%handle, info)
    if (status == tasuki_ok .and. .not. sides_fit(info%ndims, lower, upper)) then
      allocate (boxes(0))
      call finish_here(tasuki_bad_argument, 'tasuki_get_boundary: '//sides_text, stat, errmsg)
      return
    end if
    if (status == tasuki_ok) status = c_field_boundary(field%handle, widths_of(width, lower, upper), found, count)
    allocate (boxes(count))
    do b = 1, count
      boxes(b) = local_box(found(b), info)
    end do
    call finish(status, stat, errmsg)
  end subroutine

  ! The other owned cells. Local.
  subroutine tasuki_get_interior(field, box, width, lower, upper, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    type(tasuki_box), intent(out) :: box
    integer, intent(in), optional :: width, lower(:), upper(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_info) :: info
    type(c_box) :: found
    integer(c_int) :: status
    info%size = c_sizeof(info)
    status = c_field_get_info(field%handle, info)
    if (status == tasuki_ok .and. .not. sides_fit(info%ndims, lower, upper)) then
      call finish_here(tasuki_bad_argument, 'tasuki_get_interior: '//sides_text, stat, errmsg)
      return
    end if
    if (status == tasuki_ok) status = c_field_interior(field%handle, widths_of(width, lower, upper), found)
    if (status == tasuki_ok) box = local_box(found, info)
    call finish(status, stat, errmsg)
  end subroutine

  ! ---- for the other modules ------------------------------------------------------------------------------------------

  ! Where a copy of the field is, for a pointer of a type and rank.
  subroutine locate(field, type, rank, place, copy, stat, errmsg)
    type(tasuki_field), intent(in) :: field
    integer, intent(in) :: type, rank
    type(tasuki_place), intent(out) :: place
    integer, intent(in), optional :: copy
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_info) :: info
    integer(c_int) :: status
    info%size = c_sizeof(info)
    status = c_field_get_info(field%handle, info)
    if (status == tasuki_ok) then
      if (info%ndims /= rank .or. info%type /= type) then
        call finish_here(tasuki_bad_argument, &
            'tasuki_view: the array is of another type or rank than the field', stat, errmsg)
        return
      end if
      if (info%memory /= 0) then
        call finish_here(tasuki_bad_argument, &
            'tasuki_view: the field is on a GPU; use tasuki_download or tasuki_get_address', stat, errmsg)
        return
      end if
      if (present(copy)) info%current = int(copy - 1, c_int32_t)
      status = c_field_copy_data(field%handle, info%current, place%start)
    end if
    if (status == tasuki_ok) then
      place%found = .true.
      place%cells(:rank) = info%extents(rank:1:-1)
      place%stored(:rank) = place%cells(:rank)
      if (rank > 1) then
        place%stored(1) = info%strides(rank - 1)
      end if
      place%first(:rank) = 1 - info%shadow%lo(rank:1:-1)
    end if
    call finish(status, stat, errmsg)
  end subroutine

  ! A field in arrays of the caller's, of one shape.
  subroutine wrap(field, grid, type, memory, cells, contiguous, name, shadow, lower, upper, pad, stat, errmsg)
    type(tasuki_field), intent(inout) :: field
    type(tasuki_grid), intent(in) :: grid
    integer, intent(in) :: type
    type(c_ptr), intent(in) :: memory(:)
    integer, intent(in) :: cells(:)
    logical, intent(in) :: contiguous
    character(*), intent(in), optional :: name
    integer, intent(in), optional :: shadow, lower(:), upper(:), pad
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_field_options) :: options
    type(c_grid_info) :: info
    integer(c_int64_t), target :: extents(max_dims)
    character(kind=c_char), allocatable, target :: letters(:)
    integer(c_int) :: status
    info%size = c_sizeof(info)
    status = c_grid_get_info(grid%handle, info)
    if (status /= tasuki_ok) then
      call finish(status, stat, errmsg)
      return
    end if
    if (size(cells) /= info%ndims .or. .not. contiguous) then
      call finish_here(tasuki_bad_argument, &
          'tasuki_wrap: the array has another rank than the grid, or is not contiguous', stat, errmsg)
      return
    end if
    if (.not. sides_fit(info%ndims, lower, upper)) then
      call finish_here(tasuki_bad_argument, 'tasuki_wrap: '//sides_text, stat, errmsg)
      return
    end if
    extents = 0
    extents(:info%ndims) = int(cells(info%ndims:1:-1), c_int64_t)
    options%size = c_sizeof(options)
    options%name = c_text(letters, name)
    options%shadow = widths_of(shadow, lower, upper)
    options%copies = int(size(memory), c_int)
    if (present(pad)) options%pad = int(pad, c_int64_t)
    options%memory_extents = c_loc(extents)
    call finish(c_field_wrap(grid%handle, int(type, c_int), memory, options%copies, options, field%handle), stat, errmsg)
  end subroutine

  ! One width for all sides, or two for each dimension; what is not given is 1, or what `all` is.
  type(c_width) function widths_of(all, lower, upper) result(width)
    integer, intent(in), optional :: all, lower(:), upper(:)
    integer :: n
    if (present(all)) then
      width%lo = int(all, c_int64_t)
      width%hi = int(all, c_int64_t)
    end if
    if (present(lower)) then
      n = min(size(lower), max_dims)
      width%lo(:n) = int(lower(n:1:-1), c_int64_t)
    end if
    if (present(upper)) then
      n = min(size(upper), max_dims)
      width%hi(:n) = int(upper(n:1:-1), c_int64_t)
    end if
  end function

  ! Whether lower and upper, where given, have an entry a dimension.
  logical function sides_fit(ndims, lower, upper) result(fit)
    integer(c_int32_t), intent(in) :: ndims
    integer, intent(in), optional :: lower(:), upper(:)
    fit = .true.
    if (present(lower)) fit = size(lower) == ndims
    if (present(upper)) fit = fit .and. size(upper) == ndims
  end function

  type(tasuki_box) function box_from(from) result(box)
    type(c_box), intent(in) :: from
    integer :: n
    n = int(from%ndims)
    box%ndims = n
    box%lower(:n) = from%lo(n:1:-1) + 1
    box%upper(:n) = from%hi(n:1:-1)
  end function

  ! Local indices begin with the shadow in C, and with the owned cells here.
  type(tasuki_box) function local_box(from, info) result(box)
    type(c_box), intent(in) :: from
    type(c_field_info), intent(in) :: info
    integer :: n
    n = int(from%ndims)
    box = box_from(from)
    box%lower(:n) = box%lower(:n) - info%shadow%lo(n:1:-1)
    box%upper(:n) = box%upper(:n) - info%shadow%lo(n:1:-1)
  end function

end module
