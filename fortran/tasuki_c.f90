! The C functions and structs of tasuki/tasuki.h that the module tasuki calls. Users need not see it.
module tasuki_c
  use, intrinsic :: iso_c_binding
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

  type, bind(c) :: c_halo_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: path = c_null_ptr, engine = c_null_ptr
    integer(c_int) :: blocks = 0, corners = 1, reverse = 0, alternating = 0
  end type

  type, bind(c) :: c_transfer_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: path = c_null_ptr, engine = c_null_ptr
    integer(c_int) :: blocks = 0
  end type

  type, bind(c) :: c_broadcast_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: path = c_null_ptr, engine = c_null_ptr
    integer(c_int) :: blocks = 0, trees = 0, arity = 0
    integer(c_int64_t) :: chunk = 0
  end type

  type, bind(c) :: c_collective_options
    integer(c_size_t) :: size = 0
    type(c_ptr) :: path = c_null_ptr, engine = c_null_ptr
    integer(c_int) :: blocks = 0
    type(c_ptr) :: algorithm = c_null_ptr
    integer(c_int) :: trees = 0, arity = 0
    integer(c_int64_t) :: chunk = 0
    integer(c_int) :: ordered = 0, does_not_commute = 0
    type(c_funptr) :: combine = c_null_funptr
    type(c_ptr) :: combine_name = c_null_ptr, combine_data = c_null_ptr
    integer(c_int) :: where = 0
  end type

  type, bind(c) :: c_neighbours
    integer(c_int) :: to_count = 0
    type(c_ptr) :: to = c_null_ptr
    integer(c_int) :: from_count = 0
    type(c_ptr) :: from = c_null_ptr, grid = c_null_ptr
  end type

  type, bind(c) :: c_side
    integer(c_int) :: rank = 0
    type(c_ptr) :: base = c_null_ptr, layout = c_null_ptr
  end type

  interface
    type(c_ptr) function c_last_error() bind(c, name='tasuki_last_error')
      import
    end function
    subroutine c_text_free(text) bind(c, name='tasuki_text_free')
      import
      type(c_ptr), value :: text
    end subroutine
    integer(c_size_t) function c_strlen(text) bind(c, name='strlen')
      import
      type(c_ptr), value :: text
    end function

    integer(c_int) function c_init(argc, argv, context) bind(c, name='tasuki_init')
      import
      type(c_ptr), value :: argc, argv
      type(c_ptr) :: context
    end function
    integer(c_int) function c_context_create(comm, context) bind(c, name='tasuki_context_create_f')
      import
      integer(c_int), value :: comm
      type(c_ptr) :: context
    end function
    integer(c_int) function c_context_subset(context, count, ranks, subset) bind(c, name='tasuki_context_subset')
      import
      type(c_ptr), value :: context
      integer(c_int), value :: count
      integer(c_int), intent(in) :: ranks(*)
      type(c_ptr) :: subset
    end function
    integer(c_int) function c_rank(context, rank) bind(c, name='tasuki_rank')
      import
      type(c_ptr), value :: context
      integer(c_int) :: rank
    end function
    integer(c_int) function c_size(context, ranks) bind(c, name='tasuki_size')
      import
      type(c_ptr), value :: context
      integer(c_int) :: ranks
    end function
    integer(c_int) function c_deadline(context, seconds) bind(c, name='tasuki_deadline')
      import
      type(c_ptr), value :: context
      real(c_double) :: seconds
    end function
    integer(c_int) function c_set_deadline(context, seconds) bind(c, name='tasuki_set_deadline')
      import
      type(c_ptr), value :: context
      real(c_double), value :: seconds
    end function
    integer(c_int) function c_barrier(context) bind(c, name='tasuki_barrier')
      import
      type(c_ptr), value :: context
    end function
    integer(c_int) function c_allgather(context, mine, bytes, all) bind(c, name='tasuki_allgather')
      import
      type(c_ptr), value :: context, mine, all
      integer(c_size_t), value :: bytes
    end function
    integer(c_int) function c_describe(context, text) bind(c, name='tasuki_describe')
      import
      type(c_ptr), value :: context
      type(c_ptr) :: text
    end function
    integer(c_int) function c_use_gpu(context, ordinal) bind(c, name='tasuki_use_gpu')
      import
      type(c_ptr), value :: context
      integer(c_int) :: ordinal
    end function
    integer(c_int) function c_why_no_gpu(why) bind(c, name='tasuki_why_no_gpu')
      import
      type(c_ptr) :: why
    end function
    integer(c_int) function c_synchronize(context, stream) bind(c, name='tasuki_synchronize')
      import
      type(c_ptr), value :: context, stream
    end function

    integer(c_int) function c_grid_create(context, ndims, extents, options, grid) bind(c, name='tasuki_grid_create')
      import
      type(c_ptr), value :: context
      integer(c_int), value :: ndims
      integer(c_int64_t), intent(in) :: extents(*)
      type(c_grid_options), intent(in) :: options
      type(c_ptr) :: grid
    end function
    integer(c_int) function c_grid_get_info(grid, info) bind(c, name='tasuki_grid_get_info')
      import
      type(c_ptr), value :: grid
      type(c_grid_info) :: info
    end function
    integer(c_int) function c_grid_owned(grid, rank, box) bind(c, name='tasuki_grid_owned')
      import
      type(c_ptr), value :: grid
      integer(c_int), value :: rank
      type(c_box) :: box
    end function
    integer(c_int) function c_grid_coords(grid, rank, coords) bind(c, name='tasuki_grid_coords')
      import
      type(c_ptr), value :: grid
      integer(c_int), value :: rank
      integer(c_int) :: coords(*)
    end function
    integer(c_int) function c_grid_rank_at(grid, coords, rank) bind(c, name='tasuki_grid_rank_at')
      import
      type(c_ptr), value :: grid
      integer(c_int), intent(in) :: coords(*)
      integer(c_int) :: rank
    end function

    integer(c_int) function c_field_create(grid, type, options, field) bind(c, name='tasuki_field_create')
      import
      type(c_ptr), value :: grid
      integer(c_int), value :: type
      type(c_field_options), intent(in) :: options
      type(c_ptr) :: field
    end function
    integer(c_int) function c_field_wrap(grid, type, memory, count, options, field) bind(c, name='tasuki_field_wrap')
      import
      type(c_ptr), value :: grid
      integer(c_int), value :: type, count
      type(c_ptr), intent(in) :: memory(*)
      type(c_field_options), intent(in) :: options
      type(c_ptr) :: field
    end function
    integer(c_int) function c_field_get_info(field, info) bind(c, name='tasuki_field_get_info')
      import
      type(c_ptr), value :: field
      type(c_field_info) :: info
    end function
    integer(c_int) function c_field_copy_data(field, copy, data) bind(c, name='tasuki_field_copy_data')
      import
      type(c_ptr), value :: field
      integer(c_int), value :: copy
      type(c_ptr) :: data
    end function
    integer(c_int) function c_field_swap(field) bind(c, name='tasuki_field_swap')
      import
      type(c_ptr), value :: field
    end function
    integer(c_int) function c_field_upload(field, host) bind(c, name='tasuki_field_upload')
      import
      type(c_ptr), value :: field, host
    end function
    integer(c_int) function c_field_download(field, host) bind(c, name='tasuki_field_download')
      import
      type(c_ptr), value :: field, host
    end function
    integer(c_int) function c_field_boundary(field, width, boxes, count) bind(c, name='tasuki_field_boundary')
      import
      type(c_ptr), value :: field
      type(c_width), intent(in) :: width
      type(c_box) :: boxes(*)
      integer(c_int) :: count
    end function
    integer(c_int) function c_field_interior(field, width, box) bind(c, name='tasuki_field_interior')
      import
      type(c_ptr), value :: field
      type(c_width), intent(in) :: width
      type(c_box) :: box
    end function

    integer(c_int) function c_layout_bytes(count, layout) bind(c, name='tasuki_layout_bytes')
      import
      integer(c_int64_t), value :: count
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_contiguous(count, element, layout) bind(c, name='tasuki_layout_contiguous')
      import
      integer(c_int64_t), value :: count
      type(c_ptr), value :: element
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_vector(count, length, stride, element, layout) bind(c, name='tasuki_layout_vector')
      import
      integer(c_int64_t), value :: count, length, stride
      type(c_ptr), value :: element
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_hvector(count, length, stride, element, layout) bind(c, name='tasuki_layout_hvector')
      import
      integer(c_int64_t), value :: count, length, stride
      type(c_ptr), value :: element
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_subarray(ndims, sizes, subsizes, starts, element, layout) &
        bind(c, name='tasuki_layout_subarray')
      import
      integer(c_int), value :: ndims
      integer(c_int64_t), intent(in) :: sizes(*), subsizes(*), starts(*)
      type(c_ptr), value :: element
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_indexed(count, lengths, places, element, layout) &
        bind(c, name='tasuki_layout_indexed')
      import
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: lengths(*), places(*)
      type(c_ptr), value :: element
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_hindexed(count, lengths, places, element, layout) &
        bind(c, name='tasuki_layout_hindexed')
      import
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: lengths(*), places(*)
      type(c_ptr), value :: element
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_structure(count, lengths, places, elements, layout) &
        bind(c, name='tasuki_layout_structure')
      import
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: lengths(*), places(*)
      type(c_ptr), intent(in) :: elements(*)
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_resized(element, lower, extent, layout) bind(c, name='tasuki_layout_resized')
      import
      type(c_ptr), value :: element
      integer(c_int64_t), value :: lower, extent
      type(c_ptr) :: layout
    end function
    integer(c_int) function c_layout_get_info(layout, info) bind(c, name='tasuki_layout_get_info')
      import
      type(c_ptr), value :: layout
      type(c_layout_info) :: info
    end function

    integer(c_int) function c_shared_alloc(context, bytes, memory) bind(c, name='tasuki_shared_alloc')
      import
      type(c_ptr), value :: context
      integer(c_int64_t), value :: bytes
      type(c_ptr) :: memory
    end function
    integer(c_int) function c_memory_data(memory, data) bind(c, name='tasuki_memory_data')
      import
      type(c_ptr), value :: memory
      type(c_ptr) :: data
    end function

    integer(c_int) function c_halo_create(count, fields, widths, options, halo) bind(c, name='tasuki_halo_create')
      import
      integer(c_int), value :: count
      type(c_ptr), intent(in) :: fields(*)
      type(c_ptr), value :: widths
      type(c_halo_options), intent(in) :: options
      type(c_ptr) :: halo
    end function
    integer(c_int) function c_transfer_create(context, from, to, options, transfer) &
        bind(c, name='tasuki_transfer_create')
      import
      type(c_ptr), value :: context
      type(c_side), intent(in) :: from, to
      type(c_transfer_options), intent(in) :: options
      type(c_ptr) :: transfer
    end function
    integer(c_int) function c_broadcast_create(context, root, data, bytes, options, broadcast) &
        bind(c, name='tasuki_broadcast_create')
      import
      type(c_ptr), value :: context, data
      integer(c_int), value :: root
      integer(c_int64_t), value :: bytes
      type(c_broadcast_options), intent(in) :: options
      type(c_ptr) :: broadcast
    end function

    integer(c_int) function c_broadcast_layout(context, root, data, layout, options, broadcast) &
        bind(c, name='tasuki_broadcast_create_layout')
      import
      type(c_ptr), value :: context, data, layout
      integer(c_int), value :: root
      type(c_broadcast_options), intent(in) :: options
      type(c_ptr) :: broadcast
    end function
    integer(c_int) function c_blocks_of(block, count, blocks) bind(c, name='tasuki_blocks_of')
      import
      type(c_ptr), value :: block
      integer(c_int), value :: count
      type(c_ptr) :: blocks(*)
    end function
    integer(c_int) function c_blocks_of_counts(element, count, counts, displacements, blocks) &
        bind(c, name='tasuki_blocks_of_counts')
      import
      type(c_ptr), value :: element
      integer(c_int), value :: count
      integer(c_int64_t), intent(in) :: counts(*), displacements(*)
      type(c_ptr) :: blocks(*)
    end function
    integer(c_int) function c_blocks_of_elements(count, elements, counts, displacements, blocks) &
        bind(c, name='tasuki_blocks_of_elements')
      import
      integer(c_int), value :: count
      type(c_ptr), intent(in) :: elements(*)
      integer(c_int64_t), intent(in) :: counts(*), displacements(*)
      type(c_ptr) :: blocks(*)
    end function
    integer(c_int) function c_layouts_free(count, layouts) bind(c, name='tasuki_layouts_free')
      import
      integer(c_int), value :: count
      type(c_ptr) :: layouts(*)
    end function

    integer(c_int) function c_start(operation) bind(c, name='tasuki_start')
      import
      type(c_ptr), value :: operation
    end function
    integer(c_int) function c_test(operation, ended) bind(c, name='tasuki_test')
      import
      type(c_ptr), value :: operation
      integer(c_int) :: ended
    end function
    integer(c_int) function c_wait(operation) bind(c, name='tasuki_wait')
      import
      type(c_ptr), value :: operation
    end function
    integer(c_int) function c_stream_start(operation, stream) bind(c, name='tasuki_stream_start')
      import
      type(c_ptr), value :: operation, stream
    end function
    integer(c_int) function c_stream_wait(operation, stream) bind(c, name='tasuki_stream_wait')
      import
      type(c_ptr), value :: operation, stream
    end function
    integer(c_int) function c_stream_run(operation, stream) bind(c, name='tasuki_stream_run')
      import
      type(c_ptr), value :: operation, stream
    end function
    integer(c_int) function c_explain(operation, text) bind(c, name='tasuki_explain')
      import
      type(c_ptr), value :: operation
      type(c_ptr) :: text
    end function
    integer(c_int) function c_plan_text(operation, text) bind(c, name='tasuki_plan_text')
      import
      type(c_ptr), value :: operation
      type(c_ptr) :: text
    end function
    integer(c_int) function c_plan_json(operation, json) bind(c, name='tasuki_plan_json')
      import
      type(c_ptr), value :: operation
      type(c_ptr) :: json
    end function
    integer(c_int) function c_verify(operation, epochs, ok, report) bind(c, name='tasuki_verify')
      import
      type(c_ptr), value :: operation
      integer(c_int), value :: epochs
      integer(c_int) :: ok
      type(c_ptr) :: report
    end function

    integer(c_int) function c_context_free(handle) bind(c, name='tasuki_context_free')
      import
      type(c_ptr) :: handle
    end function
    integer(c_int) function c_grid_free(handle) bind(c, name='tasuki_grid_free')
      import
      type(c_ptr) :: handle
    end function
    integer(c_int) function c_field_free(handle) bind(c, name='tasuki_field_free')
      import
      type(c_ptr) :: handle
    end function
    integer(c_int) function c_layout_free(handle) bind(c, name='tasuki_layout_free')
      import
      type(c_ptr) :: handle
    end function
    integer(c_int) function c_memory_free(handle) bind(c, name='tasuki_memory_free')
      import
      type(c_ptr) :: handle
    end function
    integer(c_int) function c_operation_free(handle) bind(c, name='tasuki_operation_free')
      import
      type(c_ptr) :: handle
    end function
  end interface
end module
