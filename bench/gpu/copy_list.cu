// Any number of strided copies in one kernel launch. Each is cut into tiles, one a thread block; a thread loads all its
// units, as wide as alignment allows, before it stores the first.
#include "gpu/copy_list.hpp"

#include "gpu/device_memory.cuh"

namespace bench {
namespace {

constexpr std::uint32_t kThreads = 256;
constexpr std::uint32_t kUnits = 4;  // a thread
constexpr std::uint32_t kTile = kThreads * kUnits;

struct Side {
  std::byte* base;
  std::int64_t stride[2];
};

struct Piece {
  Side from;
  Side to;
  std::uint32_t units;   // of `unit` bytes, all
  std::uint32_t in_row;  // units
  std::uint32_t rows;    // of the inner level
  std::uint32_t unit;    // 1 to 16
  std::uint32_t first_tile;
};

__host__ __device__ inline std::int64_t offset_of(const Piece& piece, const Side& side, std::uint32_t n) {
  const std::uint32_t row = n / piece.in_row;
  const std::uint32_t outer = row / piece.rows;
  return outer * side.stride[0] + (row - outer * piece.rows) * side.stride[1] +
         static_cast<std::int64_t>(n - row * piece.in_row) * piece.unit;
}

template <class Unit>
__device__ void move_tile(const Piece& piece, std::uint32_t tile) {
  Unit value[kUnits];
  const std::uint32_t first = tile * kTile + threadIdx.x;
#pragma unroll
  for (std::uint32_t j = 0; j < kUnits; ++j) {
    const std::uint32_t n = first + j * kThreads;
    if (n < piece.units) value[j] = *reinterpret_cast<const Unit*>(piece.from.base + offset_of(piece, piece.from, n));
  }
#pragma unroll
  for (std::uint32_t j = 0; j < kUnits; ++j) {
    const std::uint32_t n = first + j * kThreads;
    if (n < piece.units) *reinterpret_cast<Unit*>(piece.to.base + offset_of(piece, piece.to, n)) = value[j];
  }
}

__global__ void __launch_bounds__(kThreads)
    move_pieces(const Piece* pieces, const std::uint32_t* first_tiles, std::uint32_t count) {
  // The last piece that begins at this tile or before: every thread looks at one.
  const int mine = threadIdx.x < count && first_tiles[threadIdx.x] <= blockIdx.x ? 1 : 0;
  const Piece piece = pieces[__syncthreads_count(mine) - 1];
  const std::uint32_t tile = blockIdx.x - piece.first_tile;
  switch (piece.unit) {
    case 16:
      return move_tile<uint4>(piece, tile);
    case 8:
      return move_tile<std::uint64_t>(piece, tile);
    case 4:
      return move_tile<std::uint32_t>(piece, tile);
    case 2:
      return move_tile<std::uint16_t>(piece, tile);
    default:
      return move_tile<std::uint8_t>(piece, tile);
  }
}

Piece piece_of(const StridedCopy& copy, std::uint32_t first_tile) {
  const GpuRows& from = copy.from_rows;
  const GpuRows& to = copy.to_rows;
  if (from.row != to.row || from.rows[0] != to.rows[0] || from.rows[1] != to.rows[1]) {
    throw tasuki::Error("CopyList: the two sides of a copy have different rows");
  }
  const auto together =
      static_cast<std::uint64_t>(from.row | from.stride[0] | from.stride[1] | to.stride[0] | to.stride[1]) |
      reinterpret_cast<std::uint64_t>(copy.from) | reinterpret_cast<std::uint64_t>(copy.to) | 16;
  const auto unit = static_cast<std::int64_t>(together & ~(together - 1));  // the lowest bit set
  if (from.bytes() / unit >= std::int64_t{1} << 31) {
    throw tasuki::Error("CopyList: a copy of " + std::to_string(from.bytes()) + " bytes is more than can be counted");
  }
  Piece piece{};
  piece.from = {const_cast<std::byte*>(copy.from), {from.stride[0], from.stride[1]}};
  piece.to = {copy.to, {to.stride[0], to.stride[1]}};
  piece.units = static_cast<std::uint32_t>(from.bytes() / unit);
  piece.in_row = static_cast<std::uint32_t>(from.row / unit);
  piece.rows = static_cast<std::uint32_t>(from.rows[1]);
  piece.unit = static_cast<std::uint32_t>(unit);
  piece.first_tile = first_tile;
  return piece;
}

}  // namespace

struct CopyList::Pieces {
  DeviceMemory pieces;
  DeviceMemory first_tiles;
  std::uint32_t count = 0;
};

GpuRows packed(const GpuRows& rows) {
  GpuRows p = rows;
  p.stride[1] = p.rows[1] > 1 ? p.row : 0;
  p.stride[0] = p.rows[0] > 1 ? p.row * p.rows[1] : 0;
  return p;
}

CopyList::CopyList(const std::vector<StridedCopy>& copies) {
  std::vector<Piece> pieces;
  std::vector<std::uint32_t> first_tiles;
  for (const StridedCopy& copy : copies) {
    pieces.push_back(piece_of(copy, tiles_));
    first_tiles.push_back(tiles_);
    tiles_ += (pieces.back().units + kTile - 1) / kTile;
  }
  if (pieces.empty()) return;
  if (pieces.size() > kThreads) {
    throw tasuki::Error("CopyList: " + std::to_string(pieces.size()) + " copies; at most " + std::to_string(kThreads) +
                        " are foreseen");
  }
  auto uploaded = std::make_shared<Pieces>();
  uploaded->count = static_cast<std::uint32_t>(pieces.size());
  uploaded->pieces = device_memory(pieces.size() * sizeof(Piece));
  uploaded->first_tiles = device_memory(first_tiles.size() * sizeof(std::uint32_t));
  TASUKI_CUDA(cudaMemcpy, uploaded->pieces.get(), pieces.data(), pieces.size() * sizeof(Piece), cudaMemcpyHostToDevice);
  TASUKI_CUDA(cudaMemcpy, uploaded->first_tiles.get(), first_tiles.data(), first_tiles.size() * sizeof(std::uint32_t),
              cudaMemcpyHostToDevice);
  TASUKI_CUDA(cudaStreamSynchronize, nullptr);
  pieces_ = uploaded;
}

void CopyList::enqueue(tasuki::Stream stream) const {
  if (tiles_ == 0) return;
  move_pieces<<<tiles_, kThreads, 0, stream>>>(reinterpret_cast<const Piece*>(pieces_->pieces.get()),
                                               reinterpret_cast<const std::uint32_t*>(pieces_->first_tiles.get()),
                                               pieces_->count);
  TASUKI_CUDA(cudaGetLastError);
}

}  // namespace bench
