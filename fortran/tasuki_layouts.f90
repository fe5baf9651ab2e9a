! Layouts and shared memory of the module tasuki: which bytes, in which order, and memory that the ranks of a host share.
module tasuki_layouts
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_c
  use tasuki_base
  implicit none
  private

  ! A sequence of byte addresses relative to a base. The constructors mean what MPI's for datatypes mean.
  type, public :: tasuki_layout
    type(c_ptr) :: handle = c_null_ptr
  end type

  ! Memory that the ranks of the same host can reach.
  type, public :: tasuki_memory
    type(c_ptr) :: handle = c_null_ptr
  end type

  public :: tasuki_layout_bytes, tasuki_layout_contiguous, tasuki_layout_vector, tasuki_layout_hvector
  public :: tasuki_layout_subarray, tasuki_layout_indexed, tasuki_layout_hindexed, tasuki_layout_structure
  public :: tasuki_layout_resized, tasuki_layout_size, tasuki_layout_extent, tasuki_blocks_of, tasuki_free
  public :: tasuki_shared_alloc, tasuki_get_memory

  interface tasuki_free
    module procedure layout_free, layouts_free, memory_free
  end interface

  ! Layouts of the blocks of collectives, as MPI counts them, relative to one base; as many as `blocks` has. Local.
  interface tasuki_blocks_of
    module procedure blocks_of_block, blocks_of_counts, blocks_of_elements
  end interface

  public :: layout_of ! for tasuki_arrays

contains

  ! `count` contiguous bytes: 8 for a real(real64). Local, as all below.
  subroutine tasuki_layout_bytes(layout, count, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(in) :: count
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_layout_bytes(int(count, c_int64_t), layout%handle), stat, errmsg)
  end subroutine

  subroutine tasuki_layout_contiguous(layout, count, element, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(in) :: count
    type(tasuki_layout), intent(in) :: element
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_layout_contiguous(int(count, c_int64_t), element%handle, layout%handle), stat, errmsg)
  end subroutine

  ! The stride counts extents of the element; in hvector, bytes.
  subroutine tasuki_layout_vector(layout, count, length, stride, element, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(in) :: count, length
    integer(int64), intent(in) :: stride
    type(tasuki_layout), intent(in) :: element
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_layout_vector(int(count, c_int64_t), int(length, c_int64_t), stride, element%handle, layout%handle), &
        stat, errmsg)
  end subroutine

  subroutine tasuki_layout_hvector(layout, count, length, stride, element, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(in) :: count, length
    integer(int64), intent(in) :: stride
    type(tasuki_layout), intent(in) :: element
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_layout_hvector(int(count, c_int64_t), int(length, c_int64_t), stride, element%handle, layout%handle), &
        stat, errmsg)
  end subroutine

  ! The part array(lower(1):upper(1), lower(2):upper(2), ...) of an array of that shape whose indices count from 1.
  subroutine tasuki_layout_subarray(layout, shape, lower, upper, element, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(in) :: shape(:), lower(:), upper(:)
    type(tasuki_layout), intent(in) :: element
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    integer :: n
    n = size(shape)
    if (size(lower) /= n .or. size(upper) /= n) then
      call finish_here(tasuki_bad_argument, &
          'tasuki_layout_subarray: shape, lower and upper need an entry for each dimension', stat, errmsg)
      return
    end if
    call finish(c_layout_subarray(int(n, c_int), int(shape(n:1:-1), c_int64_t), &
        int(upper(n:1:-1) - lower(n:1:-1) + 1, c_int64_t), int(lower(n:1:-1) - 1, c_int64_t), element%handle, &
        layout%handle), stat, errmsg)
  end subroutine

  ! Displacements count extents of the element, from 0; in hindexed and structure, bytes.
  subroutine tasuki_layout_indexed(layout, lengths, displacements, element, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer(int64), intent(in) :: lengths(:), displacements(:)
    type(tasuki_layout), intent(in) :: element
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (unequal('tasuki_layout_indexed', size(lengths), size(displacements), stat, errmsg)) return
    call finish(c_layout_indexed(int(size(lengths), c_int), lengths, displacements, element%handle, layout%handle), &
        stat, errmsg)
  end subroutine

  subroutine tasuki_layout_hindexed(layout, lengths, displacements, element, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer(int64), intent(in) :: lengths(:), displacements(:)
    type(tasuki_layout), intent(in) :: element
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (unequal('tasuki_layout_hindexed', size(lengths), size(displacements), stat, errmsg)) return
    call finish(c_layout_hindexed(int(size(lengths), c_int), lengths, displacements, element%handle, layout%handle), &
        stat, errmsg)
  end subroutine

  subroutine tasuki_layout_structure(layout, lengths, displacements, elements, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer(int64), intent(in) :: lengths(:), displacements(:)
    type(tasuki_layout), intent(in) :: elements(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    if (unequal('tasuki_layout_structure', size(lengths), size(displacements), stat, errmsg)) return
    if (unequal('tasuki_layout_structure', size(lengths), size(elements), stat, errmsg)) return
    call finish(c_layout_structure(int(size(lengths), c_int), lengths, displacements, elements%handle, layout%handle), &
        stat, errmsg)
  end subroutine

  ! The same bytes with new bounds.
  subroutine tasuki_layout_resized(layout, element, lower_bound, extent, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    type(tasuki_layout), intent(in) :: element
    integer(int64), intent(in) :: lower_bound, extent
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_layout_resized(element%handle, lower_bound, extent, layout%handle), stat, errmsg)
  end subroutine

  ! Bytes named; 0 if stat says that it is no layout.
  integer(int64) function tasuki_layout_size(layout, stat, errmsg) result(bytes)
    type(tasuki_layout), intent(in) :: layout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_layout_info) :: info
    info%size = c_sizeof(info)
    call finish(c_layout_get_info(layout%handle, info), stat, errmsg)
    bytes = info%bytes
  end function

  integer(int64) function tasuki_layout_extent(layout, stat, errmsg) result(bytes)
    type(tasuki_layout), intent(in) :: layout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_layout_info) :: info
    info%size = c_sizeof(info)
    call finish(c_layout_get_info(layout%handle, info), stat, errmsg)
    bytes = info%extent
  end function

  subroutine layout_free(layout, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_layout_free(layout%handle), stat, errmsg)
  end subroutine

  ! All of them; none if one is no layout.
  subroutine layouts_free(layouts, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layouts(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handles(size(layouts))
    handles = layouts%handle
    call finish(c_layouts_free(size(layouts, kind=c_int), handles), stat, errmsg)
    layouts%handle = handles
  end subroutine

  ! Each begins an extent of `block` after the one before it.
  subroutine blocks_of_block(blocks, block, stat, errmsg)
    type(tasuki_layout), intent(inout) :: blocks(:)
    type(tasuki_layout), intent(in) :: block
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handles(size(blocks))
    handles = blocks%handle
    call finish(c_blocks_of(block%handle, size(blocks, kind=c_int), handles), stat, errmsg)
    blocks%handle = handles
  end subroutine

  ! counts(i) elements, the first of which is displacements(i) extents of the element after the base.
  subroutine blocks_of_counts(blocks, element, counts, displacements, stat, errmsg)
    type(tasuki_layout), intent(inout) :: blocks(:)
    type(tasuki_layout), intent(in) :: element
    integer(int64), intent(in) :: counts(:), displacements(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handles(size(blocks))
    if (unequal('tasuki_blocks_of', size(blocks), size(counts), stat, errmsg)) return
    if (unequal('tasuki_blocks_of', size(counts), size(displacements), stat, errmsg)) return
    handles = blocks%handle
    call finish(c_blocks_of_counts(element%handle, size(blocks, kind=c_int), counts, displacements, handles), stat, &
        errmsg)
    blocks%handle = handles
  end subroutine

  ! counts(i) of elements(i), the first of which is displacements(i) bytes after the base.
  subroutine blocks_of_elements(blocks, elements, counts, displacements, stat, errmsg)
    type(tasuki_layout), intent(inout) :: blocks(:)
    type(tasuki_layout), intent(in) :: elements(:)
    integer(int64), intent(in) :: counts(:), displacements(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(c_ptr) :: handles(size(blocks))
    if (unequal('tasuki_blocks_of', size(blocks), size(counts), stat, errmsg)) return
    if (unequal('tasuki_blocks_of', size(counts), size(displacements), stat, errmsg)) return
    if (unequal('tasuki_blocks_of', size(counts), size(elements), stat, errmsg)) return
    handles = blocks%handle
    call finish(c_blocks_of_elements(size(blocks, kind=c_int), elements%handle, counts, displacements, handles), stat, &
        errmsg)
    blocks%handle = handles
  end subroutine

  ! Elements of `bytes` bytes in Fortran's order, of an array with this shape and these distances in bytes.
  subroutine layout_of(layout, shape, strides, bytes, stat, errmsg)
    type(tasuki_layout), intent(inout) :: layout
    integer, intent(in) :: shape(:), bytes
    integer(int64), intent(in) :: strides(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(tasuki_layout) :: inner, outer
    integer :: d, status, freed
    character(300) :: text
    text = ''
    call tasuki_layout_bytes(inner, bytes, status, text)
    do d = 1, size(shape)
      if (status /= tasuki_ok) exit
      call tasuki_layout_hvector(outer, shape(d), 1, strides(d), inner, status, text)
      call layout_free(inner, freed)
      inner = outer
    end do
    if (status == tasuki_ok) layout = inner
    call finish_here(status, trim(text), stat, errmsg)
  end subroutine

  ! Zero-filled bytes (they may differ between ranks): transfers and broadcasts need no staging there. Local.
  subroutine tasuki_shared_alloc(memory, context, bytes, stat, errmsg)
    type(tasuki_memory), intent(inout) :: memory
    type(tasuki_context), intent(in) :: context
    integer(int64), intent(in) :: bytes
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_shared_alloc(context%handle, bytes, memory%handle), stat, errmsg)
  end subroutine

  ! Where it is, for c_f_pointer. Local.
  subroutine tasuki_get_memory(memory, address, stat, errmsg)
    type(tasuki_memory), intent(in) :: memory
    type(c_ptr), intent(out) :: address
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    address = c_null_ptr
    call finish(c_memory_data(memory%handle, address), stat, errmsg)
  end subroutine

  ! Gives it back; free the operations on it first. Local.
  subroutine memory_free(memory, stat, errmsg)
    type(tasuki_memory), intent(inout) :: memory
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    call finish(c_memory_free(memory%handle), stat, errmsg)
  end subroutine

  logical function unequal(name, first, second, stat, errmsg)
    character(*), intent(in) :: name
    integer, intent(in) :: first, second
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    unequal = first /= second
    if (unequal) call finish_here(tasuki_bad_argument, name//': the lists have different lengths', stat, errmsg)
  end function

end module
