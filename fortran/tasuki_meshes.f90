! What exchanges on meshes take (tasuki_exchange_create of tasuki_making): fields of cells, and lists of cells.
module tasuki_meshes
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_structs
  use tasuki_base
  use tasuki_fields, only: tasuki_real64
  use tasuki_layouts, only: tasuki_layout
  implicit none
  private

  ! A field: memory of this rank, of the host or of GPUs, one kind on all ranks.
  type, public :: tasuki_cells
    type(c_ptr) :: base = c_null_ptr      ! c_loc of its first number
    integer(int64) :: cells = 0           ! on this rank, owned and ghosts: cells 1 to cells
    integer(int64) :: numbers = 1         ! of a cell; of tasuki_bytes: bytes
    integer :: type = tasuki_real64       ! of the numbers
    logical :: cells_first = .false.      ! u(cell, number), whose first dimension counts cells; else u(number, cell)
    character(:), allocatable :: name     ! for plans and errors, the same on all ranks; not allocated: 'field'
  end type

  ! What a rank exchanges with one rank: numbers of cells, from 1, the same of every field, or in their place a layout for
  ! each field, in bytes from its first. What is not allocated is empty.
  type, public :: tasuki_entry
    integer :: rank = 0                           ! from 0
    integer(int64), allocatable :: send(:)        ! owned here
    integer(int64), allocatable :: receive(:)     ! ghosts
    type(tasuki_layout), allocatable :: send_layouts(:), receive_layouts(:)
  end type

  ! What C's structs point to.
  type :: kept_name
    character(kind=c_char), allocatable :: letters(:)
  end type
  type :: kept_lists
    integer(c_int64_t), allocatable :: send(:), receive(:)
    type(c_ptr), allocatable :: send_handles(:), receive_handles(:)
  end type
  type, public :: kept_cells
    type(c_exchange_field), allocatable :: structs(:)
    type(kept_name), allocatable :: names(:)
  end type
  type, public :: kept_entries
    type(c_exchange_entry), allocatable :: structs(:)
    type(kept_lists), allocatable :: lists(:)
  end type

  public :: set_cells, set_entries ! for the other modules of this library

contains

  ! Fields for C, which live as long as `kept`.
  subroutine set_cells(kept, fields)
    type(kept_cells), target, intent(inout) :: kept
    type(tasuki_cells), intent(in) :: fields(:)
    integer :: f
    allocate (kept%structs(size(fields)), kept%names(size(fields)))
    do f = 1, size(fields)
      kept%structs(f)%base = fields(f)%base
      kept%structs(f)%cells = fields(f)%cells
      kept%structs(f)%numbers = fields(f)%numbers
      kept%structs(f)%type = int(fields(f)%type, c_int)
      kept%structs(f)%levels_first = merge(1_c_int, 0_c_int, fields(f)%cells_first)
      if (allocated(fields(f)%name)) kept%structs(f)%name = c_text(kept%names(f)%letters, fields(f)%name)
    end do
  end subroutine

  ! Entries for C, which live as long as `kept`; C counts cells from 0.
  subroutine set_entries(kept, entries)
    type(kept_entries), target, intent(inout) :: kept
    type(tasuki_entry), intent(in) :: entries(:)
    integer :: e
    allocate (kept%structs(size(entries)), kept%lists(size(entries)))
    do e = 1, size(entries)
      kept%structs(e)%peer = int(entries(e)%rank, c_int)
      if (allocated(entries(e)%send)) &
          call set_list(kept%structs(e)%send, kept%structs(e)%send_count, kept%lists(e)%send, entries(e)%send)
      if (allocated(entries(e)%receive)) &
          call set_list(kept%structs(e)%receive, kept%structs(e)%receive_count, kept%lists(e)%receive, entries(e)%receive)
      if (allocated(entries(e)%send_layouts)) &
          call set_handles(kept%structs(e)%send_layouts, kept%lists(e)%send_handles, entries(e)%send_layouts)
      if (allocated(entries(e)%receive_layouts)) &
          call set_handles(kept%structs(e)%receive_layouts, kept%lists(e)%receive_handles, entries(e)%receive_layouts)
    end do
  end subroutine

  subroutine set_list(address, count, kept, cells)
    type(c_ptr), intent(inout) :: address
    integer(c_int64_t), intent(inout) :: count
    integer(c_int64_t), allocatable, target, intent(inout) :: kept(:)
    integer(int64), intent(in) :: cells(:)
    kept = cells - 1
    count = size(kept, kind=c_int64_t)
    if (count > 0) address = c_loc(kept)
  end subroutine

  subroutine set_handles(address, kept, layouts)
    type(c_ptr), intent(inout) :: address
    type(c_ptr), allocatable, target, intent(inout) :: kept(:)
    type(tasuki_layout), intent(in) :: layouts(:)
    kept = layouts%handle
    if (size(kept) > 0) address = c_loc(kept)
  end subroutine

end module
