! Tasuki for Fortran: `use tasuki` gives all of it. A layer over the C interface (tasuki/tasuki.h), in Fortran's manner:
! dimensions in Fortran's order, indices from 1, shadows at indices 0 and below, optional stat and errmsg.
! docs/c-and-fortran.md tells how to use it.
module tasuki
  use tasuki_base, only: tasuki_ok, tasuki_bad_handle, tasuki_bad_argument, tasuki_failed, tasuki_no_memory, &
      tasuki_internal, tasuki_interrupted, tasuki_disagreement, tasuki_not_possible, tasuki_rank_died, tasuki_deadline, &
      tasuki_system, tasuki_context, tasuki_init, tasuki_context_create, &
      tasuki_context_subset, tasuki_free, tasuki_rank, tasuki_size, tasuki_barrier, tasuki_set_deadline, tasuki_get_deadline, &
      tasuki_describe, tasuki_use_gpu, tasuki_why_no_gpu, tasuki_synchronize
  use tasuki_fields, only: tasuki_grid, tasuki_field, tasuki_box, tasuki_int32, tasuki_int64, tasuki_real32, &
      tasuki_real64, tasuki_grid_create, tasuki_field_create, tasuki_free, tasuki_get_box, tasuki_get_split, &
      tasuki_get_coords, tasuki_get_rank_at, tasuki_swap, tasuki_get_current, tasuki_get_boundary, &
      tasuki_get_interior, tasuki_get_address, tasuki_upload, tasuki_download
  use tasuki_arrays
  use tasuki_layouts, only: tasuki_layout, tasuki_memory, tasuki_layout_bytes, tasuki_layout_contiguous, &
      tasuki_layout_vector, tasuki_layout_hvector, tasuki_layout_subarray, tasuki_layout_indexed, &
      tasuki_layout_hindexed, tasuki_layout_structure, tasuki_layout_resized, tasuki_layout_size, &
      tasuki_layout_extent, tasuki_blocks_of, tasuki_free, tasuki_shared_alloc, tasuki_get_memory
  use tasuki_operations
  use tasuki_operators, only: tasuki_operator, tasuki_combine, tasuki_operator_create, tasuki_sum, tasuki_product, &
      tasuki_min, tasuki_max, tasuki_band, tasuki_bor, tasuki_bxor, tasuki_land, tasuki_lor, tasuki_lxor, &
      tasuki_minloc, tasuki_maxloc
  use tasuki_making
  use tasuki_neighbours, only: tasuki_neighbour_ranks
  use tasuki_meshes, only: tasuki_cells, tasuki_entry
  use tasuki_distributions, only: tasuki_distributed, tasuki_dimension, tasuki_moved_array, tasuki_block, tasuki_cuts, &
      tasuki_cyclic, tasuki_replicated
#ifdef TASUKI_HAVE_MPI_F08
  use tasuki_mpi, only: tasuki_context_create
#endif
  implicit none
  public

  interface
    ! 10000 * major + 100 * minor + patch of the library that is loaded.
    integer(c_int) function tasuki_version() bind(c, name='tasuki_version')
      use, intrinsic :: iso_c_binding, only: c_int
    end function
  end interface
end module
