// Operations that kernels start: random halos, started by kernels and by the host in turns, are bit for bit what the
// host makes of the same data. The data change in every epoch.
#include <algorithm>
#include <memory>
#include <random>
#include <utility>

#include "kernel_test.hpp"
#include "random_split.hpp"

using namespace kernel_tests;
namespace device = tasuki::device;

namespace {

/// A field as kernels see it, in elements of `size` bytes.
struct View {
  Byte* copy[2];
  int size;
  int dims;
  long long lo[4];  // owned, local indices
  long long hi[4];
  long long stride[4];
  long long cells;  // in memory
};

TASUKI_DEVICE bool is_owned(const View& v, long long cell) {
  for (int d = 0; d < v.dims; ++d) {
    const long long at = cell / v.stride[d];
    cell -= at * v.stride[d];
    if (at < v.lo[d] || at >= v.hi[d]) return false;
  }
  return true;
}

/// What a cell holds before epoch `epoch`; small whole numbers, so that sums of floats are exact.
TASUKI_DEVICE void store(const View& v, Byte* to, Word seed) {
  const Word x = seed % 100;
  if (v.size == 1) *to = static_cast<Byte>(x);
  if (v.size == 2) *reinterpret_cast<short*>(to) = static_cast<short>(x);
  if (v.size == 4) *reinterpret_cast<float*>(to) = static_cast<float>(x);
  if (v.size == 8) *reinterpret_cast<double*>(to) = static_cast<double>(x);
}
TASUKI_DEVICE Word bits_of(const View& v, const Byte* from) {
  if (v.size == 1) return *from;
  if (v.size == 2) return static_cast<Word>(*reinterpret_cast<const short*>(from));
  if (v.size == 4) {
    const float x = *reinterpret_cast<const float*>(from);
    return static_cast<Word>(static_cast<long long>(x * 4));
  }
  return static_cast<Word>(static_cast<long long>(*reinterpret_cast<const double*>(from) * 4));
}

/// Who does a cell: the same thread fills it and looks at it, so that threads need not wait for each other between.
struct Crew {
  long long first;
  long long step;
};
template <class Group>
TASUKI_DEVICE Crew crew_of(const Group& block, int first_block, int blocks) {
  const long long threads = block.threads();
  return {(block.block() - first_block) * threads + block.thread(), threads * blocks};
}

TASUKI_DEVICE void add_up(const View* fields, int count, const Crew& crew, Word swaps, Word* sum) {
  Word mine = 0;
  for (int f = 0; f < count; ++f) {
    const View& v = fields[f];
    for (long long cell = crew.first; cell < v.cells; cell += crew.step)
      mine += mixed(bits_of(v, v.copy[swaps % 2] + cell * v.size), static_cast<Word>(cell), static_cast<Word>(f));
  }
  device::detail::add_gpu(sum, mine);
}

struct Work {
  const View* fields;
  int count;
  int first_block;
  int blocks;
  int epochs;
  int swap_each;  // the kernel swaps the fields after every epoch
  int split;      // start and wait
  int shadows;    // are filled, too
  Word first;     // number of the first epoch
  Word swaps;     // that the views do not know of
  Word rank;
  Word* sums;   // by epoch
  Word* ended;  // threads that came to their end
};

TASUKI_DEVICE void fill_all(const Work& w, const Crew& crew, Word epoch, Word swaps) {
  for (int f = 0; f < w.count; ++f) {
    const View& v = w.fields[f];
    for (long long cell = crew.first; cell < v.cells; cell += crew.step) {
      if (w.shadows != 0 || is_owned(v, cell))
        store(v, v.copy[swaps % 2] + cell * v.size,
              mixed(epoch, static_cast<Word>(f), static_cast<Word>(cell), w.rank));
    }
  }
}

template <bool kReduces>
TASUKI_DEVICE void exchange(const device::BasicHandle<kReduces>& handle, const Work& w) {
  const auto group = device::blocks(w.first_block, w.blocks);
  if (!group.has_this_block()) return;
  const auto block = device::this_block();
  const Crew crew = crew_of(block, w.first_block, w.blocks);
  for (int n = 0; n < w.epochs; ++n) {
    const Word swaps = w.swap_each != 0 ? static_cast<Word>(n) : 0;
    fill_all(w, crew, w.first + static_cast<Word>(n), w.swaps + swaps);
    const bool split = w.split == 1 || (w.split == 2 && n % 2 == 0);
    if (split && (!device::start(handle, group, swaps) || !device::wait(handle, group, swaps))) return;
    if (!split && w.blocks > 1 && !device::run(handle, group, swaps)) return;
    if (!split && w.blocks == 1 && !device::run(handle, block, swaps)) return;
    add_up(w.fields, w.count, crew, w.swaps + swaps, w.sums + n);
  }
  device::detail::add_gpu(w.ended, 1);
}
TASUKI_KERNEL void exchanges(device::Handle handle, Work w) {
  exchange(handle, w);
}
TASUKI_KERNEL void reductions(device::ReducingHandle handle, Work w) {
  exchange(handle, w);
}
// The same cells by a kernel that does not exchange.
TASUKI_KERNEL void only_fills(Work w) {
  const auto block = device::this_block();
  fill_all(w, crew_of(block, 0, w.blocks), w.first, w.swaps);
}
TASUKI_KERNEL void only_adds(Work w) {
  const auto block = device::this_block();
  add_up(w.fields, w.count, crew_of(block, 0, w.blocks), w.swaps, w.sums);
}

struct Case {
  std::vector<std::int64_t> extents;
  tasuki::GridOptions grid;
  std::vector<tasuki::Width> shadows;
  std::vector<int> sizes;
  std::vector<int> copies;
  std::string path;
  bool corners = true;
  bool reverse = false;
  bool alternating = false;
};

#if defined(__CUDACC__)
const std::vector<std::string> kPaths = {"auto", "peer:put", "peer:eager", "peer:ll", "mpi"};
// What is passed on or added up waits for lines in an order that groups of few blocks cannot keep: device() says so.
const std::string kAcross = "peer:put,peer:eager,mpi";
constexpr unsigned kMostCells[] = {0, 20000, 300, 50, 12};
#else
const std::vector<std::string> kPaths = {"auto", "shared:put", "shared:eager", "shared:pull", "mpi"};
const std::string kAcross = "auto";
constexpr unsigned kMostCells[] = {0, 700, 50, 14, 6};
#endif

// Threads have no messages; across islands there is nothing else.
std::string random_path(std::mt19937& random, bool islands) {
  if (islands) return random() % 3 == 0 ? "mpi" : kAcross;
  return kPaths[random() % (kPaths.size() - (ranks_are_threads() ? 1 : 0))];
}

Case random_case(int ranks, std::mt19937& random, bool islands = false) {
  Case c;
  const int dims = 1 + static_cast<int>(random() % 4);
  c.grid.split = random_split(ranks, dims, random);
  for (int d = 0; d < dims; ++d) {
    c.extents.push_back(1 + static_cast<std::int64_t>(random() % 4 == 0 ? random() % 5 : random() % kMostCells[dims]));
    c.grid.periodic.push_back(random() % 2 == 0);
  }
  c.corners = random() % 3 != 0;
  c.reverse = random() % 4 == 0;
  c.alternating = !c.reverse && random() % 2 == 0;
  for (int f = 0; f < 1 + static_cast<int>(random() % 3); ++f) {
    tasuki::Width shadow(0);
    for (std::size_t d = 0; d < static_cast<std::size_t>(dims); ++d) {
      shadow.lo[d] = static_cast<std::int64_t>(random() % 4);
      shadow.hi[d] = static_cast<std::int64_t>(random() % 4);
    }
    c.shadows.push_back(shadow);
    c.sizes.push_back(1 << random() % 4);
    c.copies.push_back(c.alternating || random() % 2 == 0 ? 2 : 1);
  }
  c.path = random_path(random, islands);
  if (c.reverse && c.path.ends_with(":put")) c.path = "auto";  // a put cannot add
#if defined(__CUDACC__)
  if (c.reverse && c.path != "peer:eager" && c.path != "mpi") c.path = "peer:put,peer:eager";
  if (c.reverse && islands) c.path = kAcross;
  if (c.path == "peer:ll") std::fill(c.sizes.begin(), c.sizes.end(), 4);  // it carries words
#endif
  return c;
}

/// The fields of a case and their halo.
class Subject {
 public:
  Subject(const tasuki::Grid& grid, const Case& c, const std::string& path) : c_(c) {
    std::vector<tasuki::HaloField> all;
    for (std::size_t f = 0; f < c.shadows.size(); ++f) {
      const tasuki::FieldOptions options{.name = std::string("f").append(std::to_string(f)),
                                         .shadow = c.shadows[f],
                                         .copies = c.copies[f],
                                         .pad = static_cast<std::int64_t>(f),
                                         .memory = kWhere};
      if (c.sizes[f] == 1) add(tasuki::Field<std::uint8_t>(grid, options));
      if (c.sizes[f] == 2) add(tasuki::Field<std::int16_t>(grid, options));
      if (c.sizes[f] == 4) add(tasuki::Field<float>(grid, options));
      if (c.sizes[f] == 8) add(tasuki::Field<double>(grid, options));
      all.emplace_back(fields_.back());
    }
    tasuki::HaloOptions options;
    options.path = path;
    options.corners = c.corners;
    options.reverse = c.reverse;
    options.alternating = c.alternating;
    halo_ = std::make_unique<tasuki::Halo>(all, options);
    const bool sound = tasuki::verify(*halo_).ok();  // collective
    CHECK(sound);
    views_ = std::make_unique<Buffer<View>>(fields_.size());
    for (std::size_t f = 0; f < fields_.size(); ++f) (*views_)[f] = view_of(fields_[f], c.sizes[f]);
  }

  tasuki::Halo& halo() { return *halo_; }
  std::vector<tasuki::FieldBase>& fields() { return fields_; }
  Work work(int rank) {
    Work w{};
    w.fields = views_->get();
    w.count = static_cast<int>(fields_.size());
    w.rank = static_cast<Word>(rank);
    w.shadows = c_.reverse ? 1 : 0;
    return w;
  }
  /// Fields with one copy do not swap.
  void swap() {
    for (auto& field : fields_)
      if (field.copies() == 2) field.swap();
    ++swaps_;
  }
  Word swaps() const { return swaps_; }
  bool all_equal(Subject& other) {
    bool equal = true;
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      std::vector<std::byte> mine(static_cast<std::size_t>(fields_[f].bytes()));
      std::vector<std::byte> theirs(mine.size());
      fields_[f].download(mine.data());
      other.fields_[f].download(theirs.data());
      equal = equal && mine == theirs;
    }
    return equal;
  }

 private:
  void add(const tasuki::FieldBase& field) { fields_.push_back(field); }
  static View view_of(const tasuki::FieldBase& field, int size) {
    View v{};
    v.size = size;
    v.dims = field.grid().ndims();
    const tasuki::Box own = field.local_owned();
    if (own.empty()) return v;
    v.copy[0] = v.copy[1] = reinterpret_cast<Byte*>(field.raw(0));
    if (field.copies() == 2) v.copy[1] = reinterpret_cast<Byte*>(field.raw(1));
    for (int d = 0; d < v.dims; ++d) {
      const auto i = static_cast<std::size_t>(d);
      v.lo[d] = own.lo[i];
      v.hi[d] = own.hi[i];
      v.stride[d] = field.strides()[i];
    }
    v.cells = field.bytes() / size;
    return v;
  }

  const Case& c_;
  std::vector<tasuki::FieldBase> fields_;
  std::unique_ptr<tasuki::Halo> halo_;
  std::unique_ptr<Buffer<View>> views_;
  Word swaps_ = 0;
};

tasuki::ResidentOptions launch_of(const tasuki::KernelGroup& group, int blocks) {
  tasuki::ResidentOptions options;
  options.blocks = blocks;
  options.threads = group.threads;
  options.cpu_threads = group.cpu_threads;
  return options;
}

tasuki::KernelGroup random_group(std::mt19937& random) {
  tasuki::KernelGroup group;
  const int blocks[] = {1, 1, 2, 3, 5, 24};
  group.blocks = blocks[random() % 6];
  group.threads = 32 * (1 + static_cast<int>(random() % 8));
  group.cpu_threads = group.blocks > 5 ? 1 : 1 + static_cast<int>(random() % 3);
  return group;
}

/// `subject` by kernels and by the host in turns, `reference` by the host.
void run_case(const tasuki::Context& ctx, const Case& c, std::mt19937& random) {
  const tasuki::Grid grid(ctx, c.extents, c.grid);
  Subject subject(grid, c, c.path);
  Subject reference(grid, c, c.path);
  const bool pairs = std::find(c.copies.begin(), c.copies.end(), 2) != c.copies.end();
  const bool swaps = pairs && (c.alternating || random() % 2 == 0);  // the kernel swaps
  Word epoch = 1;
  for (int round = 0; round < 4; ++round) {
    const int epochs = 1 + static_cast<int>(random() % 5);
    Buffer<Word> sums(static_cast<std::size_t>(epochs));
    Buffer<Word> expected(static_cast<std::size_t>(epochs));
    Buffer<Word> ended(1);
    const tasuki::KernelGroup group = random_group(random);
    const bool by_kernel = random() % 4 != 0;
    const int more = static_cast<int>(random() % 3);  // blocks that do something else
    const int before = static_cast<int>(random() % static_cast<unsigned>(more + 1));
    const int split = static_cast<int>(random() % 3);
    INFO("round ", round, ", epoch ", epoch, ", ", by_kernel ? group.blocks : 0, " blocks of ", group.threads,
         " exchange");
    const auto by_host = [&](Subject& one, Buffer<Word>& into, bool swap) {
      for (int n = 0; n < epochs; ++n) {
        Work w = one.work(ctx.rank());
        w.blocks = 1;
        w.first = epoch + static_cast<Word>(n);
        w.swaps = one.swaps();
        w.sums = into.get() + n;
        tasuki::launch_resident(ctx, {}, only_fills, w).wait();
        one.halo().start();
        one.halo().wait();
        tasuki::launch_resident(ctx, {}, only_adds, w).wait();
        if (swap) one.swap();
      }
    };
    if (by_kernel) {
      Work w = subject.work(ctx.rank());
      w.first_block = before;
      w.blocks = group.blocks;
      w.epochs = epochs;
      w.swap_each = swaps ? 1 : 0;
      w.split = split;
      w.first = epoch;
      w.swaps = subject.swaps();
      w.sums = sums.get();
      w.ended = ended.get();
      const auto options = launch_of(group, group.blocks + more);
      if (c.reverse) {
        tasuki::launch_resident(ctx, options, reductions, subject.halo().device_reducing(group), w).wait();
      } else {
        tasuki::launch_resident(ctx, options, exchanges, subject.halo().device(group), w).wait();
      }
#if defined(__CUDACC__)
      CHECK(ended[0] == static_cast<Word>(group.blocks * group.threads));
#else
      CHECK(ended[0] == static_cast<Word>(group.blocks * group.cpu_threads));
#endif
      for (int n = 0; swaps && n < epochs; ++n) subject.swap();
    } else {
      by_host(subject, sums, swaps);
    }
    by_host(reference, expected, swaps);
    for (std::size_t n = 0; n < static_cast<std::size_t>(epochs); ++n) CHECK(sums[n] == expected[n]);
    // Of an alternating halo the neighbours may be writing into the copy of the next epoch already.
    if (!c.alternating) CHECK(subject.all_equal(reference));
    if (swaps) {  // the copy of the last epoch
      subject.swap();
      reference.swap();
      CHECK(subject.all_equal(reference));
      subject.swap();
      reference.swap();
    }
    epoch += static_cast<Word>(epochs);
  }
}

std::string text_of(const Case& c) {
  std::string text = "path " + c.path + (c.corners ? " corners" : "") + (c.reverse ? " reverse" : "") +
                     (c.alternating ? " alternating" : "") + ", extents";
  for (const auto n : c.extents) text.append(" ").append(std::to_string(n));
  text += ", split";
  for (const auto n : c.grid.split) text.append(" ").append(std::to_string(n));
  return text;
}

}  // namespace

RANK_TEST("plans: random halos by kernels and by the host in turns are those of the host") {
  prepare(ctx);
  for (unsigned seed = 1; seed <= 16; ++seed) {
    std::mt19937 random(seed);
    const Case c = random_case(ctx.size(), random);
    INFO("seed ", seed, ": ", text_of(c));
    run_case(ctx, c, random);
  }
}

TEST_CASE("plans: random halos across islands by kernels and by the host in turns are those of the host") {
  if (ranks_are_threads()) return;
  for (const int island : {1, 2}) {
    with_islands(island, [] {
      on_ranks([](const tasuki::Context& ctx) {
        prepare(ctx);
        for (unsigned seed = 101; seed <= 110; ++seed) {
          std::mt19937 random(seed);
          const Case c = random_case(ctx.size(), random, true);
          INFO("seed ", seed, ": ", text_of(c));
          run_case(ctx, c, random);
        }
      });
    });
  }
}
