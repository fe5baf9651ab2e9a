! Lists that collectives take, an entry for each rank or neighbour: of counts, which need not be given, and of layouts.
module tasuki_lists
  use, intrinsic :: iso_c_binding
  use, intrinsic :: iso_fortran_env, only: int64
  use tasuki_base
  use tasuki_layouts, only: tasuki_layout
  use tasuki_neighbours, only: tasuki_neighbour_ranks, block_count
  implicit none
  private

  public :: fits, c_list

  ! Whether a list has an entry for each block that is sent or got, one a rank or, where they are given, one a neighbour;
  ! if not, the call ends. A list of counts that is not given fits; so does, of ranks, one of no layout, which C judges.
  interface fits
    module procedure counts_fit, layouts_fit
  end interface

  ! The address of a list; null for counts that are not given, and for no layout.
  interface c_list
    module procedure address_of_counts, address_of_handles
  end interface

contains

  logical function counts_fit(call, name, counts, stat, errmsg, context, neighbours, sent) result(fit)
    character(*), intent(in) :: call, name
    integer(int64), intent(in), optional :: counts(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in), optional :: neighbours
    logical, intent(in), optional :: sent
    fit = .true.
    if (present(counts)) fit = count_fits(call, name, size(counts), stat, errmsg, context, neighbours, sent)
  end function

  logical function layouts_fit(call, name, layouts, stat, errmsg, context, neighbours, sent) result(fit)
    character(*), intent(in) :: call, name
    type(tasuki_layout), intent(in) :: layouts(:)
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in), optional :: neighbours
    logical, intent(in), optional :: sent
    fit = size(layouts) == 0 .and. .not. present(neighbours)
    if (.not. fit) fit = count_fits(call, name, size(layouts), stat, errmsg, context, neighbours, sent)
  end function

  logical function count_fits(call, name, entries, stat, errmsg, context, neighbours, sent) result(fit)
    character(*), intent(in) :: call, name
    integer, intent(in) :: entries
    integer, intent(out), optional :: stat
    character(*), intent(inout), optional :: errmsg
    type(tasuki_context), intent(in) :: context
    type(tasuki_neighbour_ranks), intent(in), optional :: neighbours
    logical, intent(in), optional :: sent
    character(:), allocatable :: each
    integer :: needed
    if (present(neighbours)) then
      each = 'neighbour'
      needed = block_count(neighbours, sent)
    else
      each = 'rank'
      needed = tasuki_size(context, stat, errmsg)
    end if
    fit = entries == needed
    if (needed >= 0 .and. .not. fit) &
        call finish_here(tasuki_bad_argument, call//': '//name//' needs an entry for each '//each, stat, errmsg)
  end function

  type(c_ptr) function address_of_counts(counts) result(address)
    integer(int64), contiguous, target, intent(in), optional :: counts(:)
    address = c_null_ptr
    if (present(counts)) address = c_loc(counts)
  end function

  type(c_ptr) function address_of_handles(handles) result(address)
    type(c_ptr), contiguous, target, intent(in) :: handles(:)
    address = c_null_ptr
    if (size(handles) > 0) address = c_loc(handles)
  end function

end module
