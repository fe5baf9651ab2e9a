! The structs of tasuki/tasuki.h, with the defaults of their initialisers; those of operations' options are written from
! bindings/operations.py. Users need not see it.
module tasuki_structs
  use, intrinsic :: iso_c_binding
  use tasuki_option_structs
  implicit none
  public

  integer, parameter :: max_dims = 7

  type, bind(c) :: c_box
    integer(c_int32_t) :: ndims = 0
    integer(c_int64_t) :: lo(max_dims) = 0, hi(max_dims) = 0
  end type

  type, bind(c) :: c_width
    integer(c_int64_t) :: lo(max_dims) = 1, hi(max_dims) = 1
  end type

  type, bind(c) :: c_grid_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: split = c_null_ptr, periodic = c_null_ptr, cuts = c_null_ptr, cut_counts = c_null_ptr
    integer(c_int) :: reorder = 0
    type(c_ptr) :: mapping = c_null_ptr, given = c_null_ptr
  end type

  type, bind(c) :: c_grid_info
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: ndims = 0, number = 0
    integer(c_int64_t) :: extents(max_dims) = 0
    integer(c_int32_t) :: split(max_dims) = 0, periodic(max_dims) = 0
    type(c_box) :: owned
  end type

  type, bind(c) :: c_field_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: name = c_null_ptr
    type(c_width) :: shadow
    integer(c_int) :: copies = 1, memory = 0
    integer(c_int64_t) :: pad = 0, element_bytes = 0
    type(c_ptr) :: memory_extents = c_null_ptr
  end type

  type, bind(c) :: c_field_info
    integer(c_size_t) :: size = 0
    integer(c_int32_t) :: ndims = 0, type = 0, memory = 0, copies = 0, current = 0
    integer(c_int64_t) :: element_bytes = 0, bytes = 0
    type(c_width) :: shadow
    type(c_box) :: owned, local_owned
    integer(c_int64_t) :: extents(max_dims) = 0, strides(max_dims) = 0
  end type

  type, bind(c) :: c_layout_info
    integer(c_size_t) :: size = 0
    integer(c_int64_t) :: bytes = 0, lower_bound = 0, extent = 0, true_lower_bound = 0, true_upper_bound = 0, runs = 0
    integer(c_int32_t) :: pattern = 0, overlaps = 0
  end type

  type, bind(c) :: c_neighbours
    integer(c_int) :: to_count = 0
    type(c_ptr) :: to = c_null_ptr
    integer(c_int) :: from_count = 0
    type(c_ptr) :: from = c_null_ptr, grid = c_null_ptr
  end type

  type, bind(c) :: c_exchange_field
    type(c_ptr) :: base = c_null_ptr
    integer(c_int64_t) :: cells = 0, numbers = 1
    integer(c_int) :: type = 0, levels_first = 0
    type(c_ptr) :: name = c_null_ptr
  end type

  type, bind(c) :: c_exchange_entry
    integer(c_int) :: peer = 0
    integer(c_int64_t) :: send_count = 0
    type(c_ptr) :: send = c_null_ptr
    integer(c_int64_t) :: receive_count = 0
    type(c_ptr) :: receive = c_null_ptr, send_layouts = c_null_ptr, receive_layouts = c_null_ptr
  end type

  type, bind(c) :: c_distributed
    integer(c_int) :: ndims = 0
    type(c_ptr) :: extents = c_null_ptr, split = c_null_ptr, kinds = c_null_ptr, widths = c_null_ptr, cuts = c_null_ptr
    integer(c_int) :: rank_count = 0
    type(c_ptr) :: ranks = c_null_ptr, starts = c_null_ptr, counts = c_null_ptr, steps = c_null_ptr
  end type

  type, bind(c) :: c_redistribute_array
    integer(c_int64_t) :: cell_bytes = 0
    type(c_ptr) :: source = c_null_ptr, target = c_null_ptr
    type(c_ptr) :: source_strides = c_null_ptr, target_strides = c_null_ptr, name = c_null_ptr
  end type

  type, bind(c) :: c_side
    integer(c_int) :: rank = 0
    type(c_ptr) :: base = c_null_ptr, layout = c_null_ptr
  end type
end module
