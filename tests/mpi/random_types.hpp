// Random datatypes: any constructor, nested, with zero counts, negative strides and bounds, holes and pair types.
#pragma once

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace random_types {

using Random = std::mt19937_64;

inline int below(Random& random, int end) {
  return static_cast<int>(random() % static_cast<std::uint64_t>(end));
}
inline int between(Random& random, int low, int high) {
  return low + below(random, high - low + 1);
}

/// For trees that are to have one signature: they are of MPI_INT alone.
inline bool of_ints_alone = false;

// Without MPI_LONG_DOUBLE: MPICH moves the ten bytes of each that hold the number, and leaves the padding.
inline MPI_Datatype named_type(Random& random) {
  if (of_ints_alone) return MPI_INT;
  const std::array<MPI_Datatype, 14> types{MPI_CHAR,     MPI_SHORT,      MPI_INT,       MPI_FLOAT,
                                           MPI_DOUBLE,   MPI_INT64_T,    MPI_BYTE,      MPI_C_DOUBLE_COMPLEX,
                                           MPI_UINT16_T, MPI_DOUBLE_INT, MPI_SHORT_INT, MPI_FLOAT_INT,
                                           MPI_LONG_INT, MPI_2INT};
  return types[static_cast<std::size_t>(below(random, static_cast<int>(types.size())))];
}

/// Needs MPI_ERRORS_RETURN. A type and what it is, as text for messages. Inner types are freed as MPI allows.
struct Tree {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  bool derived = false;
  std::string text;
  void free() {
    if (derived) MPI_Type_free(&type);
  }
};

inline Tree named_tree(Random& random) {
  Tree tree{named_type(random), false, ""};
  std::array<char, MPI_MAX_OBJECT_NAME> name{};
  int length = 0;
  MPI_Type_get_name(tree.type, name.data(), &length);
  tree.text = name.data();
  return tree;
}

inline Tree random_tree(Random& random, int depth, bool large_counts);

namespace detail {

inline std::string list(const std::vector<int>& numbers) {
  std::string text;
  for (const int number : numbers) text += std::to_string(number) + " ";
  return text;
}

inline std::vector<int> numbers(Random& random, int count, int low, int high) {
  std::vector<int> all(static_cast<std::size_t>(count));
  for (int& number : all) number = between(random, low, high);
  return all;
}

}  // namespace detail

inline Tree random_tree(Random& random, int depth, [[maybe_unused]] bool large_counts = false) {
  using namespace detail;
  if (depth == 0 || below(random, 8) == 0) return named_tree(random);
  Tree inner = random_tree(random, depth - 1, large_counts);
  MPI_Aint low = 0, extent = 0;
  MPI_Type_get_extent(inner.type, &low, &extent);
  const MPI_Aint wide = std::max<MPI_Aint>(extent < 0 ? -extent : extent, 1);
  Tree made;
  made.derived = true;
  const int count = between(random, 0, 4);
  const auto displacement = [&](int at) { return static_cast<MPI_Aint>(at) * wide + below(random, 3); };
  std::vector<MPI_Aint> displacements(static_cast<std::size_t>(count));
  for (MPI_Aint& one : displacements) one = displacement(between(random, -6, 6));
  const int length = between(random, 0, 3);
  // Open MPI takes some blocks that lie closely, each below the one before, for a contiguous range.
  const int stride_drawn = between(random, -5, 5);
  const int stride = stride_drawn < 0 && -stride_drawn <= std::max(length, 1) ? -6 : stride_drawn;
  const std::vector<int> lengths = numbers(random, count, 0, 3);
  const std::vector<int> places = numbers(random, count, -6, 6);
  const int kind = below(random, 12);
#if MPI_VERSION >= 4
  if (large_counts && below(random, 2) == 0 && kind <= 4) {
    const std::vector<MPI_Count> large_lengths(lengths.begin(), lengths.end());
    const std::vector<MPI_Count> large_displacements(displacements.begin(), displacements.end());
    const std::vector<MPI_Count> large_places(places.begin(), places.end());
    switch (kind) {
      case 0:
        MPI_Type_contiguous_c(count, inner.type, &made.type);
        break;
      case 1:
        MPI_Type_vector_c(count, length, stride, inner.type, &made.type);
        break;
      case 2:
        MPI_Type_create_hvector_c(count, length, displacement(stride), inner.type, &made.type);
        break;
      case 3:
        MPI_Type_indexed_c(count, large_lengths.data(), large_places.data(), inner.type, &made.type);
        break;
      default:
        MPI_Type_create_hindexed_c(count, large_lengths.data(), large_displacements.data(), inner.type, &made.type);
    }
    made.text = "large " + std::to_string(kind) + " of " + inner.text;
    inner.free();
    return made;
  }
#endif
  switch (kind) {
    case 0:
      MPI_Type_contiguous(count, inner.type, &made.type);
      made.text = "contiguous " + std::to_string(count);
      break;
    case 1:
      MPI_Type_vector(count, length, stride, inner.type, &made.type);
      made.text = "vector " + list({count, length, stride});
      break;
    case 2: {
      MPI_Aint bytes = displacement(stride);
      if (bytes < 0 && -bytes <= std::max(length, 1) * wide) bytes -= 3 * wide;
      MPI_Type_create_hvector(count, length, bytes, inner.type, &made.type);
      made.text = "hvector " + list({count, length, static_cast<int>(bytes)});
      break;
    }
    case 3:
      MPI_Type_indexed(count, lengths.data(), places.data(), inner.type, &made.type);
      made.text = "indexed " + list(lengths) + "at " + list(places);
      break;
    case 4:
      MPI_Type_create_hindexed(count, lengths.data(), displacements.data(), inner.type, &made.type);
      made.text = "hindexed " + list(lengths);
      break;
    case 5:
      MPI_Type_create_indexed_block(count, length, places.data(), inner.type, &made.type);
      made.text = "indexed_block " + std::to_string(length) + " at " + list(places);
      break;
    case 6:
      MPI_Type_create_hindexed_block(count, length, displacements.data(), inner.type, &made.type);
      made.text = "hindexed_block " + std::to_string(length);
      break;
    case 7: {
      std::vector<MPI_Datatype> types;
      std::vector<Tree> trees;
      for (int i = 0; i < count; ++i) {
        trees.push_back(random_tree(random, depth - 1, large_counts));
        int size = 0;
        MPI_Type_size(trees.back().type, &size);
        if (size > 0) continue;  // MPICH divides by zero when it packs a struct with a member of no bytes
        trees.back().free();
        trees.back() = named_tree(random);
      }
      made.text = "struct " + list(lengths) + "(";
      for (const Tree& tree : trees) {
        types.push_back(tree.type);
        made.text += tree.text + "; ";
      }
      MPI_Type_create_struct(count, lengths.data(), displacements.data(), types.data(), &made.type);
      made.text += ")";
      for (Tree& tree : trees) tree.free();
      break;
    }
    case 8: {
      const int ndims = between(random, 1, 3);
      std::vector<int> sizes, parts, starts;
      for (int d = 0; d < ndims; ++d) {
        sizes.push_back(between(random, 1, 4));
        parts.push_back(between(random, 1, sizes.back()));
        starts.push_back(between(random, 0, sizes.back() - parts.back()));
      }
      const int order = below(random, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
      MPI_Type_create_subarray(ndims, sizes.data(), parts.data(), starts.data(), order, inner.type, &made.type);
      made.text = "subarray " + list(sizes) + ", " + list(parts) + ", " + list(starts) +
                  (order == MPI_ORDER_C ? "in C's order" : "in Fortran's order");
      break;
    }
    case 9: {
      const int ndims = between(random, 1, 3);
      std::vector<int> sizes, distributions, arguments, processes;
      int all = 1;
      for (int d = 0; d < ndims; ++d) {
        sizes.push_back(between(random, 1, 7));
        const int how = below(random, 3);
        processes.push_back(how == 0 ? 1 : between(random, 1, 3));
        distributions.push_back(how == 0   ? MPI_DISTRIBUTE_NONE
                                : how == 1 ? MPI_DISTRIBUTE_BLOCK
                                           : MPI_DISTRIBUTE_CYCLIC);
        const int smallest = how == 1 ? (sizes.back() + processes.back() - 1) / processes.back() : 1;
        arguments.push_back(how == 0 || below(random, 2) ? MPI_DISTRIBUTE_DFLT_DARG
                                                         : between(random, smallest, smallest + 2));
        all *= processes.back();
      }
      const int order = below(random, 2) ? MPI_ORDER_C : MPI_ORDER_FORTRAN;
      const int rank = below(random, all);
      if (MPI_Type_create_darray(all, rank, ndims, sizes.data(), distributions.data(), arguments.data(),
                                 processes.data(), order, inner.type, &made.type) != MPI_SUCCESS)
        MPI_Type_dup(inner.type, &made.type);  // Open MPI makes none of which a rank has nothing
      made.text = "darray of " + std::to_string(all) + " rank " + std::to_string(rank) + ": " + list(sizes) + "| " +
                  list(distributions) + "| " + list(arguments) + "| " + list(processes) + "order " +
                  (order == MPI_ORDER_C ? "C" : "Fortran");
      break;
    }
    case 10: {
      const MPI_Aint bound = below(random, 9) - 4;
      const MPI_Aint length_now = extent + below(random, 2 * static_cast<int>(std::min<MPI_Aint>(wide, 100))) -
                                  std::min<MPI_Aint>(wide, 100) / 2;
      MPI_Type_create_resized(inner.type, bound, length_now, &made.type);
      made.text = "resized " + list({static_cast<int>(bound), static_cast<int>(length_now)});
      break;
    }
    default:
      MPI_Type_dup(inner.type, &made.type);
      made.text = "dup";
  }
  if (kind != 7) made.text += " of " + inner.text;
  inner.free();
  return made;
}

}  // namespace random_types
