// What typed messages take between two ranks, one way, in a program of MPI alone: run it without and with the library.
//   mpirun -n 2 tasuki-bench-typed [SECONDS a case [CASE, or a part of its name]]
//   mpirun -n 2 tasuki-bench-typed --submatrices [--cold]
// The first form's line a case: name, bytes, and the median in µs of a typed message (both sides typed), of the same
// bytes packed by hand on both sides, and of as many contiguous bytes. submatrices.cpp describes the second form;
// `--cold` overwrites the caches before each message. tools/typed_tables.py makes tables of several runs.
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "typed.hpp"

namespace {

int rank;
double seconds = 0.1;
std::string wanted;  // part of the names of the cases that run

double median_us(const std::function<void()>& there, const std::function<void()>& back) {
  std::vector<double> times;
  const auto turn = [&] {
    const double start = MPI_Wtime();
    if (rank == 0) {
      there();
      back();
    } else {
      back();
      there();
    }
    return (MPI_Wtime() - start) / 2 * 1e6;
  };
  for (int i = 0; i < 5; ++i) turn();
  int rounds = 0;
  double one = turn();
  MPI_Bcast(&one, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  rounds = std::clamp(static_cast<int>(seconds * 1e6 / (2 * std::max(one, 0.5))), 11, 20000);
  for (int i = 0; i < rounds; ++i) times.push_back(turn());
  return median(std::move(times));
}

struct Runs {  // what the type names, for packing by hand
  std::vector<MPI_Aint> offsets;
  std::vector<int> bytes;
};

// `runs` as someone would pack it by hand: a loop over the runs.
void gather(const Runs& runs, const char* base, char* out) {
  for (std::size_t i = 0; i < runs.offsets.size(); ++i) {
    if (runs.bytes[i] == 8)
      std::memcpy(out, base + runs.offsets[i], 8);
    else
      std::memcpy(out, base + runs.offsets[i], static_cast<std::size_t>(runs.bytes[i]));
    out += runs.bytes[i];
  }
}
void scatter(const Runs& runs, const char* in, char* base) {
  for (std::size_t i = 0; i < runs.offsets.size(); ++i) {
    if (runs.bytes[i] == 8)
      std::memcpy(base + runs.offsets[i], in, 8);
    else
      std::memcpy(base + runs.offsets[i], in, static_cast<std::size_t>(runs.bytes[i]));
    in += runs.bytes[i];
  }
}

void run(const std::string& name, int count, MPI_Datatype type, const Runs& runs) {
  if (name.find(wanted) == std::string::npos) {
    MPI_Type_free(&type);
    return;
  }
  MPI_Type_commit(&type);
  int size = 0;
  MPI_Type_size(type, &size);
  const std::size_t bytes = static_cast<std::size_t>(size) * static_cast<std::size_t>(count);
  MPI_Aint low = 0, extent = 0, true_low = 0, true_extent = 0;
  MPI_Type_get_extent(type, &low, &extent);
  MPI_Type_get_true_extent(type, &true_low, &true_extent);
  const std::size_t span = static_cast<std::size_t>(true_low + true_extent + extent * (count - 1)) + 64;
  std::vector<char> a(span, 1), b(span, 2), flat(bytes + 64, 3);
  const int other = 1 - rank;
  const auto typed_send = [&](void* buffer) { MPI_Send(buffer, count, type, other, 0, MPI_COMM_WORLD); };
  const auto typed_recv = [&](void* buffer) {
    MPI_Recv(buffer, count, type, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  };
  const bool first = rank == 0;
  const int n = static_cast<int>(bytes);
  const double typed = median_us([&] { typed_send(a.data()); }, [&] { typed_recv(b.data()); });
  const double hand = median_us(
      [&] {
        gather(runs, a.data(), flat.data());
        MPI_Send(flat.data(), n, MPI_BYTE, other, 0, MPI_COMM_WORLD);
      },
      [&] {
        MPI_Recv(flat.data(), n, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        scatter(runs, flat.data(), b.data());
      });
  const double plain =
      median_us([&] { MPI_Send(flat.data(), n, MPI_BYTE, other, 0, MPI_COMM_WORLD); },
                [&] { MPI_Recv(flat.data(), n, MPI_BYTE, other, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE); });
  if (first) std::printf("%-28s %9zu %10.2f %10.2f %10.2f\n", name.c_str(), bytes, typed, hand, plain);
  std::fflush(stdout);
  MPI_Type_free(&type);
}

Runs strided(int count, int block, MPI_Aint stride) {
  Runs runs;
  for (int i = 0; i < count; ++i) {
    runs.offsets.push_back(i * stride);
    runs.bytes.push_back(block);
  }
  return runs;
}

void hvector(const std::string& name, int bytes, int block) {
  MPI_Datatype type;
  const int count = bytes / block;
  const MPI_Datatype element = block % 8 == 0 ? MPI_DOUBLE : MPI_CHAR;
  const int size = block % 8 == 0 ? 8 : 1;
  MPI_Type_create_hvector(count, block / size, 2 * block, element, &type);
  run(name + " hvector", 1, type, strided(count, block, 2 * block));
}

void resized(const std::string& name, int bytes, int block) {
  MPI_Datatype inner, type;
  MPI_Type_contiguous(block / 8, MPI_DOUBLE, &inner);
  MPI_Type_create_resized(inner, 0, 2 * block, &type);
  MPI_Type_free(&inner);
  run(name + " resized", bytes / block, type, strided(bytes / block, block, 2 * block));
}

// A box of `part` in an array of `size` doubles, C's order.
void box(const std::string& name, std::vector<int> size, std::vector<int> part, std::vector<int> start) {
  MPI_Datatype type;
  MPI_Type_create_subarray(static_cast<int>(size.size()), size.data(), part.data(), start.data(), MPI_ORDER_C,
                           MPI_DOUBLE, &type);
  Runs runs;
  std::vector<int> at(size.size(), 0);
  for (;;) {
    MPI_Aint offset = 0;
    for (std::size_t d = 0; d < size.size(); ++d)
      offset = offset * size[d] + start[d] + (d + 1 < size.size() ? at[d] : 0);
    runs.offsets.push_back(offset * 8);
    runs.bytes.push_back(part.back() * 8);
    std::size_t d = size.size() - 1;
    while (d-- > 0) {
      if (++at[d] < part[d]) break;
      at[d] = 0;
    }
    if (d == static_cast<std::size_t>(-1)) break;
  }
  run(name, 1, type, runs);
}

// Particles: `count` of them at random, of which `bytes` each are sent from each of several arrays.
void particles(const std::string& name, int count, const std::vector<int>& bytes) {
  std::srand(7);
  Runs runs;
  std::vector<MPI_Datatype> types;
  std::vector<MPI_Aint> begins;
  std::vector<int> ones;
  MPI_Aint begin = 0;
  for (const int each : bytes) {
    std::vector<int> places;
    for (int i = 0, at = 0; i < count; ++i) {
      at += 1 + std::rand() % 7;
      places.push_back(at * each / 8);
      runs.offsets.push_back(begin + static_cast<MPI_Aint>(at) * each);
      runs.bytes.push_back(each);
    }
    MPI_Datatype type;
    MPI_Type_create_indexed_block(count, each / 8, places.data(), MPI_DOUBLE, &type);
    types.push_back(type);
    begins.push_back(begin);
    ones.push_back(1);
    begin += static_cast<MPI_Aint>(count) * 8 * each;
  }
  MPI_Datatype all;
  MPI_Type_create_struct(static_cast<int>(types.size()), ones.data(), begins.data(), types.data(), &all);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
  run(name, 1, all, runs);
}

// The halo of a block of n³ doubles, one deep, with all 26 neighbours: two ranks, periodic, so that 18 of them are the
// other rank and 8 this one. Persistent requests; by hand each face is packed by itself, and sent as bytes.
void exchange(const std::string& name, int n) {
  if (name.find(wanted) == std::string::npos) return;
  const int width = n + 2, other = 1 - rank;
  std::vector<double> field(static_cast<std::size_t>(width) * width * width, rank);
  std::vector<MPI_Request> typed, hand;
  std::vector<MPI_Datatype> types;
  std::vector<Runs> out_runs, in_runs;
  std::vector<std::vector<char>> buffers;
  buffers.reserve(2 * 27);
  std::size_t bytes = 0;
  for (int receives = 1; receives >= 0; --receives) {
    for (int direction = 0; direction < 27; ++direction) {
      const int step[3] = {direction / 9 - 1, direction / 3 % 3 - 1, direction % 3 - 1};
      if (direction == 13) continue;
      const int sizes[3] = {width, width, width};
      int parts[3], starts[3];
      for (int d = 0; d < 3; ++d) {
        parts[d] = step[d] == 0 ? n : 1;
        const int inside = step[d] < 0 ? 1 : n, outside = step[d] < 0 ? 0 : n + 1;
        starts[d] = step[d] == 0 ? 1 : receives ? outside : inside;
      }
      MPI_Datatype type;
      MPI_Type_create_subarray(3, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
      MPI_Type_commit(&type);
      types.push_back(type);
      Runs runs;
      for (int x = starts[0]; x < starts[0] + parts[0]; ++x)
        for (int y = starts[1]; y < starts[1] + parts[1]; ++y) {
          runs.offsets.push_back(((static_cast<MPI_Aint>(x) * width + y) * width + starts[2]) * 8);
          runs.bytes.push_back(parts[2] * 8);
        }
      const int size = parts[0] * parts[1] * parts[2] * 8, whom = step[0] == 0 ? rank : other;
      const int tag = receives ? 26 - direction : direction;
      buffers.emplace_back(static_cast<std::size_t>(size));
      MPI_Request request;
      if (receives) {
        MPI_Recv_init(field.data(), 1, type, whom, tag, MPI_COMM_WORLD, &request);
        typed.push_back(request);
        MPI_Recv_init(buffers.back().data(), size, MPI_BYTE, whom, 100 + tag, MPI_COMM_WORLD, &request);
        in_runs.push_back(runs);
      } else {
        MPI_Send_init(field.data(), 1, type, whom, tag, MPI_COMM_WORLD, &request);
        typed.push_back(request);
        MPI_Send_init(buffers.back().data(), size, MPI_BYTE, whom, 100 + tag, MPI_COMM_WORLD, &request);
        out_runs.push_back(runs);
        bytes += static_cast<std::size_t>(size);
      }
      hand.push_back(request);
    }
  }
  const auto go = [](std::vector<MPI_Request>& requests) {
    MPI_Startall(static_cast<int>(requests.size()), requests.data());
    MPI_Waitall(static_cast<int>(requests.size()), requests.data(), MPI_STATUSES_IGNORE);
  };
  const auto nothing = [] {};
  auto* base = reinterpret_cast<char*>(field.data());
  // Both ranks do it at the same time, so that a turn is one exchange.
  const double by_type = 2 * median_us([&] { go(typed); }, nothing);
  const double by_hand = 2 * median_us(
                                 [&] {
                                   for (std::size_t i = 0; i < 26; ++i)
                                     gather(out_runs[i], base, buffers[26 + i].data());
                                   go(hand);
                                   for (std::size_t i = 0; i < 26; ++i) scatter(in_runs[i], buffers[i].data(), base);
                                 },
                                 nothing);
  const double bytes_alone = 2 * median_us([&] { go(hand); }, nothing);
  if (rank == 0) std::printf("%-28s %9zu %10.2f %10.2f %10.2f\n", name.c_str(), bytes, by_type, by_hand, bytes_alone);
  std::fflush(stdout);
  for (std::vector<MPI_Request>* all : {&typed, &hand})
    for (MPI_Request& request : *all) MPI_Request_free(&request);
  for (MPI_Datatype& type : types) MPI_Type_free(&type);
}

// MPI_Neighbor_alltoallw with both neighbours of a periodic row of ranks, which are one rank, in blocks at twice their
// stride. By hand both are packed, and sent as bytes by the same call.
void neighbours(const std::string& name, int bytes, int block) {
  if (name.find(wanted) == std::string::npos) return;
  const int ranks = 2, periodic = 1, count = bytes / block;
  MPI_Comm row;
  MPI_Cart_create(MPI_COMM_WORLD, 1, &ranks, &periodic, 0, &row);
  MPI_Datatype type;
  MPI_Type_create_hvector(count, block / 8, 2 * block, MPI_DOUBLE, &type);
  MPI_Type_commit(&type);
  const auto size = static_cast<std::size_t>(bytes);
  const Runs runs = strided(count, block, 2 * block);
  std::vector<char> a(4 * size, 1), b(4 * size, 2), out(2 * size, 3), in(2 * size, 4);
  const int ones[2] = {1, 1}, sizes[2] = {bytes, bytes};
  const MPI_Aint typed_at[2] = {0, 2 * bytes}, flat_at[2] = {0, bytes};
  const MPI_Datatype typed[2] = {type, type}, plain[2] = {MPI_BYTE, MPI_BYTE};
  const auto nothing = [] {};
  const auto contiguous = [&] {
    MPI_Neighbor_alltoallw(out.data(), sizes, flat_at, plain, in.data(), sizes, flat_at, plain, row);
  };
  const double by_type =
      2 *
      median_us([&] { MPI_Neighbor_alltoallw(a.data(), ones, typed_at, typed, b.data(), ones, typed_at, typed, row); },
                nothing);
  const double by_hand = 2 * median_us(
                                 [&] {
                                   for (std::size_t i = 0; i < 2; ++i)
                                     gather(runs, a.data() + 2 * i * size, out.data() + i * size);
                                   contiguous();
                                   for (std::size_t i = 0; i < 2; ++i)
                                     scatter(runs, in.data() + i * size, b.data() + 2 * i * size);
                                 },
                                 nothing);
  const double bytes_alone = 2 * median_us(contiguous, nothing);
  if (rank == 0)
    std::printf("%-28s %9d %10.2f %10.2f %10.2f\n", name.c_str(), 2 * bytes, by_type, by_hand, bytes_alone);
  std::fflush(stdout);
  MPI_Type_free(&type);
  MPI_Comm_free(&row);
}

bool is_option(const std::string& word) {
  return word.starts_with('-');
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  if (ranks != 2) {
    if (rank == 0) std::fprintf(stderr, "tasuki-bench-typed: run it on 2 ranks, not on %d\n", ranks);
    MPI_Finalize();
    return 2;
  }
  const std::vector<std::string> words(argv + 1, argv + argc);
  const bool cold = words.size() == 2 && words[1] == "--cold";
  if (!words.empty() && words[0] == "--submatrices" && words.size() == (cold ? 2 : 1)) {
    submatrices(rank, cold);
    MPI_Finalize();
    return 0;
  }
  if (words.size() > 2 || std::any_of(words.begin(), words.end(), is_option)) {
    if (rank == 0)
      std::fprintf(stderr,
                   "usage: tasuki-bench-typed [SECONDS [CASE]], or tasuki-bench-typed --submatrices [--cold]\n");
    MPI_Finalize();
    return 2;
  }
  if (!words.empty()) seconds = std::atof(words[0].c_str());
  if (words.size() > 1) wanted = words[1];
  if (rank == 0) std::printf("%-28s %9s %10s %10s %10s\n", "case", "bytes", "typed µs", "by hand", "contiguous");
  hvector("64 B / 8", 64, 8);
  hvector("1 KiB / 8", 1 << 10, 8);
  hvector("64 KiB / 8", 64 << 10, 8);
  resized("64 KiB / 8", 64 << 10, 8);
  hvector("64 KiB / 512", 64 << 10, 512);
  hvector("1 MiB / 8", 1 << 20, 8);
  resized("1 MiB / 8", 1 << 20, 8);
  hvector("1 MiB / 512", 1 << 20, 512);
  hvector("1 MiB / 4096", 1 << 20, 4096);
  hvector("16 MiB / 8", 16 << 20, 8);
  box("WRF x: 4-d box", {3, 40, 64, 70}, {3, 40, 64, 3}, {0, 0, 0, 4});
  box("WRF y: 4-d box", {3, 40, 64, 70}, {3, 40, 3, 64}, {0, 0, 4, 3});
  box("MILC su3 (t)", {16, 16, 16, 16 * 6}, {16, 16, 1, 16 * 6}, {0, 0, 7, 0});
  box("NAS LU x", {64, 64, 64, 5}, {64, 64, 1, 5}, {0, 0, 1, 0});
  box("NAS LU y", {64, 64, 64, 5}, {64, 1, 64, 5}, {0, 1, 0, 0});
  box("NAS MG x", {66, 66, 66}, {64, 64, 1}, {1, 1, 1});
  box("NAS MG y", {66, 66, 66}, {64, 1, 64}, {1, 1, 1});
  box("NAS MG z", {66, 66, 66}, {1, 64, 64}, {1, 1, 1});
  particles("LAMMPS full", 3000, {8, 24, 8, 8, 24});
  particles("LAMMPS atomic", 3000, {24});
  particles("SPECFEM", 6000, {8});
  box("FFT transpose", {256, 256, 2}, {256, 128, 2}, {0, 64, 0});
  exchange("26 neighbours of 64³", 64);
  exchange("26 neighbours of 20³", 20);
  neighbours("neighbours 2 x 1 KiB / 8", 1 << 10, 8);
  neighbours("neighbours 2 x 64 KiB / 8", 64 << 10, 8);
  neighbours("neighbours 2 x 64 KiB / 512", 64 << 10, 512);
  neighbours("neighbours 2 x 512 KiB / 8", 512 << 10, 8);
  neighbours("neighbours 2 x 512 KiB / 512", 512 << 10, 512);
  neighbours("neighbours 2 x 4 MiB / 8", 4 << 20, 8);
  MPI_Finalize();
  return 0;
}
