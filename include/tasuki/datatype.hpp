// Layouts of MPI datatypes, and datatypes of layouts.
#pragma once

#include <cstdint>

#include <mpi.h>

#include "tasuki/layout.hpp"

namespace tasuki {

/// The bytes that one element of `type` names, in the order of its type map, with MPI's lower bound and extent. Any
/// constructor (`MPI_Type_create_darray` too, and those with large counts), in any nesting. `type` need not be
/// committed, and is not kept. Local; MPI must be initialised. Throws `Error` if the MPI does not say how a type was
/// made, or says it in a way that is not known here.
Layout from_mpi(MPI_Datatype type);

/// Several ways to say the same: one type for all, or a number of elements that follow each other.
enum class Spelling : std::uint8_t {
  favourite,  ///< the one that the MPI in use moves fastest
  nested,     ///< count is 1, and the type is a nest of hvectors (Open MPI's favourite)
  repeated,   ///< the outermost dimension is the count (MPICH's favourite)
};

/// A datatype and how many of it name the bytes of a layout, in its order. The type is committed, and belongs to the
/// caller (`MPI_Type_free`). Its elements are unsigned integers, as large as the blocks and `unit` allow; its bounds
/// are the layout's where count is 1.
struct Spelt {
  std::int64_t count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
};
/// Local; MPI must be initialised. `unit`: bytes of which a message that this type receives may be any multiple (MPICH
/// takes it for an error if one ends within an element). Throws `Error` if a number of the layout is one that this
/// MPI's calls cannot take.
Spelt to_mpi(const Layout& layout, Spelling spelling = Spelling::favourite, std::int64_t unit = 8);

}  // namespace tasuki
