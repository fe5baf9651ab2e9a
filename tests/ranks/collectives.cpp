// Collectives: random ones, several at once, started in different orders, with new data at every start, against plain
// loops; every plan verified. And what is said about arguments that are wrong.
#include "tasuki/collectives.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "error_of.hpp"
#include "host_paths.hpp"
#include "rank_test.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/tasuki.hpp"

using namespace tasuki;

namespace {

using Random = std::mt19937;
using Counts = std::vector<std::int64_t>;

std::int64_t below(Random& random, std::int64_t n) {
  return static_cast<std::int64_t>(random() % static_cast<unsigned>(n));
}

// What is to be done; equal on all ranks.
struct Wanted {
  CollectiveKind kind{};
  int number = 0;  // tells data of several apart
  int root = 0;
  std::int64_t count = 0;
  Counts counts;  // of blocks; alltoall: [from * ranks + to]
  ReduceOp op = ReduceOp::sum;
  bool in_place = false;
  bool shared = false;
  CollectiveOptions options;
};

bool has_blocks(CollectiveKind kind) {
  return kind == CollectiveKind::allgather || kind == CollectiveKind::reduce_scatter ||
         kind == CollectiveKind::alltoall || kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
}

bool rooted(CollectiveKind kind) {
  return kind == CollectiveKind::broadcast || kind == CollectiveKind::reduce || kind == CollectiveKind::gather ||
         kind == CollectiveKind::scatter;
}

class Running {
 public:
  virtual ~Running() = default;
  virtual Operation& operation() = 0;
  virtual void fill(int iteration) = 0;
  virtual bool right(int iteration) const = 0;
};

// Numbers so small that sums of floats are exact.
template <class T>
T value(const Wanted& wanted, int iteration, int rank, std::int64_t index) {
  return static_cast<T>((index * 7 + rank * 3 + iteration * 5 + wanted.number) % 11);
}

template <class T>
T combined(ReduceOp op, T a, T b) {
  switch (op) {
    case ReduceOp::min:
      return std::min(a, b);
    case ReduceOp::max:
      return std::max(a, b);
    default:
      return static_cast<T>(a + b);
  }
}

template <class T>
class Typed final : public Running {
 public:
  Typed(const Context& ctx, const Wanted& wanted, DType type)
      : ctx_(ctx), w_(wanted), in_(room(false) + 2), out_(room(true) + 2) {
    if (w_.shared) {
      const auto bytes = static_cast<std::int64_t>((in_.size() + out_.size()) * sizeof(T));
      memory_ = shared_alloc(ctx, bytes + 16);
    }
    make(type);
  }

  Operation& operation() override { return *operation_; }

  void fill(int iteration) override {
    T* const from = here() ? out() : in();
    for (std::size_t i = 0; i < out_.size(); ++i) out()[i] = static_cast<T>(77);
    for (std::size_t i = 0; i < in_.size(); ++i) in()[i] = static_cast<T>(88);
    const std::int64_t at = here() && w_.kind == CollectiveKind::allgather ? begin(me()) : 0;
    if (here() && w_.kind == CollectiveKind::gather) {  // only the root's own block is there
      for (std::int64_t i = 0; i < block(me()); ++i) out()[begin(me()) + i] = given(iteration, me(), i);
      return;
    }
    T* const to = here() && w_.kind == CollectiveKind::scatter ? in() : from;
    if (w_.kind == CollectiveKind::broadcast && me() != w_.root) return;
    for (std::int64_t i = 0; i < gives(me()); ++i) to[at + i] = given(iteration, me(), i);
  }

  bool right(int iteration) const override {
    const std::vector<T> expected = oracle(iteration);
    const T* const got = out();
    for (std::size_t i = 0; i < expected.size(); ++i)
      if (got[i] != expected[i]) return false;
    return got[static_cast<std::size_t>(result())] == static_cast<T>(77) || in_place_whole();
  }

 private:
  int me() const { return ctx_.rank(); }
  int n() const { return ctx_.size(); }
  bool here() const {  // the contribution lies in `out`, or the result in `in`
    if (w_.kind == CollectiveKind::broadcast) return true;
    return w_.in_place && (!rooted(w_.kind) || me() == w_.root);
  }
  bool in_place_whole() const { return here() && w_.kind == CollectiveKind::reduce_scatter; }
  std::int64_t block(int r) const { return w_.counts.empty() ? w_.count : w_.counts[static_cast<std::size_t>(r)]; }
  std::int64_t block(int from, int to) const {
    return w_.counts.empty() ? w_.count : w_.counts[static_cast<std::size_t>(from * n() + to)];
  }
  std::int64_t begin(int r) const {
    std::int64_t sum = 0;
    for (int b = 0; b < r; ++b) sum += block(b);
    return sum;
  }
  std::int64_t sent(int from, int to) const {
    std::int64_t sum = 0;
    for (int b = 0; b < to; ++b) sum += block(from, b);
    return sum;
  }
  std::int64_t received(int from, int to) const {
    std::int64_t sum = 0;
    for (int b = 0; b < from; ++b) sum += block(b, to);
    return sum;
  }

  // Elements that a rank contributes.
  std::int64_t gives(int r) const {
    switch (w_.kind) {
      case CollectiveKind::reduce_scatter:
        return begin(n());
      case CollectiveKind::scatter:
        return r == w_.root ? begin(n()) : 0;
      case CollectiveKind::allgather:
      case CollectiveKind::gather:
        return block(r);
      case CollectiveKind::alltoall:
        return sent(r, n());
      case CollectiveKind::barrier:
        return 0;
      default:
        return w_.count;
    }
  }
  // Elements of this rank's result.
  std::int64_t result() const {
    switch (w_.kind) {
      case CollectiveKind::reduce:
        return me() == w_.root ? w_.count : 0;
      case CollectiveKind::reduce_scatter:
        return block(me());
      case CollectiveKind::scatter:
        return here() ? 0 : block(me());
      case CollectiveKind::allgather:
        return begin(n());
      case CollectiveKind::gather:
        return me() == w_.root ? begin(n()) : 0;
      case CollectiveKind::alltoall:
        return received(n(), me());
      case CollectiveKind::barrier:
        return 0;
      default:
        return w_.count;
    }
  }
  std::size_t room(bool of_out) const {
    const std::int64_t size = of_out ? std::max(result(), here() ? gives(me()) : 0) : gives(me());
    return static_cast<std::size_t>(size);
  }

  T given(int iteration, int rank, std::int64_t index) const { return value<T>(w_, iteration, rank, index); }

  std::vector<T> sum_of(int iteration, int first, int last, std::int64_t at, std::int64_t count) const {
    std::vector<T> sum;
    for (std::int64_t i = 0; i < count; ++i) {
      T s = given(iteration, first, at + i);
      for (int r = first + 1; r <= last; ++r) s = combined(w_.op, s, given(iteration, r, at + i));
      sum.push_back(s);
    }
    return sum;
  }

  std::vector<T> oracle(int iteration) const {
    std::vector<T> all;
    const auto take = [&](int rank, std::int64_t at, std::int64_t count) {
      for (std::int64_t i = 0; i < count; ++i) all.push_back(given(iteration, rank, at + i));
    };
    switch (w_.kind) {
      case CollectiveKind::broadcast:
        take(w_.root, 0, w_.count);
        break;
      case CollectiveKind::allreduce:
      case CollectiveKind::reduce:
        return sum_of(iteration, 0, n() - 1, 0, result());
      case CollectiveKind::reduce_scatter:
        return sum_of(iteration, 0, n() - 1, begin(me()), block(me()));
      case CollectiveKind::scan:
        return sum_of(iteration, 0, me(), 0, w_.count);
      case CollectiveKind::exscan:
        if (me() > 0) return sum_of(iteration, 0, me() - 1, 0, w_.count);
        for (std::int64_t i = 0; i < w_.count; ++i) all.push_back(here() ? given(iteration, 0, i) : static_cast<T>(77));
        break;
      case CollectiveKind::allgather:
      case CollectiveKind::gather:
        for (int r = 0; r < n() && result() > 0; ++r) take(r, 0, block(r));
        break;
      case CollectiveKind::alltoall:
        for (int r = 0; r < n(); ++r) take(r, sent(r, me()), block(r, me()));
        break;
      case CollectiveKind::scatter:
        take(w_.root, begin(me()), result());
        break;
      case CollectiveKind::barrier:
        break;
    }
    return all;
  }

  T* in() { return memory_ ? reinterpret_cast<T*>(memory_.get()) : in_.data(); }
  T* out() { return memory_ ? reinterpret_cast<T*>(memory_.get()) + in_.size() : out_.data(); }
  const T* out() const { return const_cast<Typed*>(this)->out(); }

  void make(DType type) {
    const void* const from = here() && w_.kind != CollectiveKind::scatter ? in_place : in();
    void* const to = here() && w_.kind == CollectiveKind::scatter ? in_place : out();
    const CollectiveOptions& o = w_.options;
    const auto with = [&](auto&& count) {
      switch (w_.kind) {
        case CollectiveKind::reduce_scatter:
          operation_ = ReduceScatter(ctx_, from, to, count, type, w_.op, o);
          break;
        case CollectiveKind::allgather:
          operation_ = Allgather(ctx_, from, to, count, type, o);
          break;
        case CollectiveKind::gather:
          operation_ = Gather(ctx_, w_.root, from, to, count, type, o);
          break;
        default:
          operation_ = Scatter(ctx_, w_.root, from, to, count, type, o);
          break;
      }
    };
    switch (w_.kind) {
      case CollectiveKind::broadcast:
        operation_ = Broadcast(ctx_, w_.root, out(), w_.count * static_cast<std::int64_t>(sizeof(T)), o);
        break;
      case CollectiveKind::allreduce:
        operation_ = Allreduce(ctx_, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::reduce:
        operation_ = Reduce(ctx_, w_.root, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::scan:
        operation_ = Scan(ctx_, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::exscan:
        operation_ = Exscan(ctx_, from, to, w_.count, type, w_.op, o);
        break;
      case CollectiveKind::barrier:
        operation_ = Barrier(ctx_, o);
        break;
      case CollectiveKind::alltoall:
        if (w_.counts.empty()) {
          operation_ = Alltoall(ctx_, from, to, w_.count, type, o);
        } else {
          Counts send, receive;
          for (int r = 0; r < n(); ++r) {
            send.push_back(block(me(), r));
            receive.push_back(block(r, me()));
          }
          operation_ = Alltoall(ctx_, from, to, send, receive, type, o);
        }
        break;
      default:
        w_.counts.empty() ? with(w_.count) : with(w_.counts);
    }
  }

  const Context& ctx_;
  Wanted w_;
  std::vector<T> in_, out_;
  std::shared_ptr<std::byte> memory_;
  std::optional<Operation> operation_;
};

const std::vector<CollectiveKind> kKinds{
    CollectiveKind::broadcast,      CollectiveKind::allreduce, CollectiveKind::allgather, CollectiveKind::reduce,
    CollectiveKind::reduce_scatter, CollectiveKind::alltoall,  CollectiveKind::gather,    CollectiveKind::scatter,
    CollectiveKind::barrier,        CollectiveKind::scan,      CollectiveKind::exscan};

template <class All>
const auto& one_of(const All& all, Random& random) {
  return all[static_cast<std::size_t>(below(random, std::ssize(all)))];
}

Wanted random_wanted(const Context& ctx, int number, Random& random) {
  const int n = ctx.size();
  Wanted w;
  w.kind = one_of(kKinds, random);
  w.number = number;
  w.root = static_cast<int>(below(random, n));
  w.count = one_of(Counts{0, 1, 2, 7, n + 1, 101, 4099}, random);
  if (has_blocks(w.kind) && below(random, 2) == 0) {
    const bool matrix = w.kind == CollectiveKind::alltoall;
    w.counts.resize(static_cast<std::size_t>(matrix ? n * n : n));
    for (auto& count : w.counts) count = below(random, 3) == 0 ? 0 : below(random, 300);
  }
  w.op = one_of(std::vector<ReduceOp>{ReduceOp::sum, ReduceOp::min, ReduceOp::max}, random);
  w.in_place = w.kind != CollectiveKind::broadcast && w.kind != CollectiveKind::barrier && below(random, 2) == 0;
  for (int a = 0; a < n && w.in_place && w.kind == CollectiveKind::alltoall && !w.counts.empty(); ++a)
    for (int b = 0; b < a; ++b)
      w.counts[static_cast<std::size_t>(a * n + b)] = w.counts[static_cast<std::size_t>(b * n + a)];
  w.shared = below(random, 2) == 0;
  std::vector<std::string> names{"auto"};
  const auto text = [&] {
    CollectiveShape shape;
    shape.kind = w.kind;
    shape.algorithm = "no such";
    return error_of([&] { plan(Machine::uniform(2, 2, 0), shape); });
  }();
  for (const char* name : {"exchange", "doubling", "ring", "direct", "pairwise", "binomial", "trees", "dissemination"})
    if (text.find(name, text.find("one of")) != std::string::npos) names.emplace_back(name);
  w.options.algorithm = one_of(names, random);
  const bool over_trees = std::find(names.begin(), names.end(), "trees") != names.end();
  if (over_trees && w.options.algorithm != "binomial" && below(random, 2) == 0) {
    w.options.trees = static_cast<int>(below(random, 3));
    w.options.arity = static_cast<int>(below(random, 3));
    w.options.chunk = 1 + below(random, 5000);
  }
  w.options.path = one_of(host_paths(ctx), random);
  // Some paths are for shared memory only, and some cannot add.
  if (w.options.path == "shared:put" || w.options.path == "shared:read" || w.options.path == "shared:pull")
    w.options.path += ",shared:eager";
  return w;
}

std::unique_ptr<Running> make(const Context& ctx, const Wanted& w, std::int64_t type) {
  switch (type) {
    case 0:
      return std::make_unique<Typed<double>>(ctx, w, DType::f64);
    case 1:
      return std::make_unique<Typed<std::int32_t>>(ctx, w, DType::i32);
    case 2:
      return std::make_unique<Typed<float>>(ctx, w, DType::f32);
    default:
      return std::make_unique<Typed<std::uint8_t>>(ctx, w, DType::u8);
  }
}

DType type_of(std::int64_t type) {
  const std::vector<DType> types{DType::f64, DType::i32, DType::f32, DType::u8};
  return types[static_cast<std::size_t>(type)];
}

CollectiveShape shape_of(const Wanted& w, DType type) {
  CollectiveShape shape;
  shape.kind = w.kind;
  shape.root = w.root;
  shape.count = w.kind == CollectiveKind::broadcast ? w.count * size_of(type) : w.count;
  shape.counts = w.counts;
  shape.type = w.kind == CollectiveKind::broadcast ? DType::u8 : type;
  shape.op = w.op;
  shape.in_place = w.in_place;
  shape.shared = w.shared;
  shape.algorithm = w.options.algorithm;
  shape.trees = w.options.trees;
  shape.arity = w.options.arity;
  shape.chunk = w.options.chunk;
  shape.path = w.options.path;
  if (const char* path = std::getenv("TASUKI_PATH"); path != nullptr && shape.path == "auto") shape.path = path;
  return shape;
}

std::string described(const Wanted& w) {
  std::string counts;
  for (const std::int64_t count : w.counts) counts += " " + std::to_string(count);
  return std::string(to_string(w.kind)) + ":" + w.options.algorithm + " root " + std::to_string(w.root) + " count " +
         std::to_string(w.count) + " counts" + counts + " " + std::string(to_string(w.op)) +
         (w.in_place ? " in place" : "") + (w.shared ? " shared" : "") + " path " + w.options.path + " engine " +
         w.options.engine + " trees " + std::to_string(w.options.trees) + " arity " + std::to_string(w.options.arity) +
         " chunk " + std::to_string(w.options.chunk);
}

void run_some(const Context& ctx, unsigned seed, int groups, const std::string& engine) {
  Random random(seed);
  Random own(seed + 1000 + static_cast<unsigned>(ctx.rank()));  // orders differ between ranks
  for (int group = 0; group < groups; ++group) {
    std::vector<std::unique_ptr<Running>> all;
    std::vector<std::string> names;
    const int active = 1 + static_cast<int>(below(random, 4));
    for (int i = 0; i < active; ++i) {
      Wanted w = random_wanted(ctx, i, random);
      w.options.engine = engine;
      const std::int64_t type = below(random, 4);
      names.push_back(described(w));
      INFO(names.back());
      all.push_back(make(ctx, w, type));
      const VerifyReport report = verify(all.back()->operation());
      INFO(report.text());
      CHECK(report.ok());
      const Plan off_line = plan(machine_of(ctx), shape_of(w, type_of(type))).plan(ctx.rank());
      CHECK(to_json(off_line) == to_json(all.back()->operation().plan()));
    }
    std::vector<std::size_t> order(all.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (int iteration = 0; iteration < 4; ++iteration) {
      for (const auto& one : all) one->fill(iteration);
      std::shuffle(order.begin(), order.end(), own);
      for (const std::size_t i : order) all[i]->operation().start();
      std::shuffle(order.begin(), order.end(), own);
      for (const std::size_t i : order) {
        INFO(names[i]);
        CAPTURE(iteration);
        while (below(own, 2) == 0 && !all[i]->operation().test()) continue;
        all[i]->operation().wait();
        CHECK(all[i]->right(iteration));
      }
    }
    for (const auto& one : all) one->operation().wait();  // nothing is active: no effect
  }
}

}  // namespace

RANK_TEST("random collectives give what plain loops give, several at once, started in any order") {
  run_some(ctx, 21, ctx.size() > 6 ? 12 : 60, "inline");
}

RANK_TEST("random collectives by the progress thread") {
  run_some(ctx, 22, ctx.size() > 6 ? 4 : 15, "thread");
}

RANK_TEST("equal runs of an allreduce give equal bits, on every path and on every rank") {
  const std::int64_t count = 1003;
  for (const std::string algorithm : {"exchange", "doubling", "ring"}) {
    std::vector<std::vector<double>> results;
    for (const std::string& path : host_paths(ctx)) {
      if (path == "shared:put" || path == "shared:read" || path == "shared:pull") continue;  // cannot carry all of it
      CollectiveOptions options;
      options.algorithm = algorithm;
      options.path = path;
      std::vector<double> in(static_cast<std::size_t>(count)), out(in.size());
      Allreduce allreduce(ctx, in.data(), out.data(), count, DType::f64, ReduceOp::sum, options);
      for (int repetition = 0; repetition < 2; ++repetition) {
        Random noise(static_cast<unsigned>(ctx.rank()) + 5);
        for (double& number : in) number = static_cast<double>(noise()) / 3e7 - 50;
        allreduce.start();
        allreduce.wait();
        results.push_back(out);
      }
    }
    for (const auto& result : results) CHECK(std::memcmp(result.data(), results[0].data(), 8 * result.size()) == 0);
    const std::string mine(reinterpret_cast<const char*>(results[0].data()), 8 * results[0].size());
    for (const std::string& other : ctx.allgather(mine)) CHECK(other == mine);
  }
}

RANK_TEST("a barrier ends when all have started it") {
  Barrier barrier(ctx);
  const VerifyReport report = verify(barrier);
  CHECK(report.ok());
  for (int turn = 1; turn < 20; ++turn) {
    // Whoever comes last has all others wait: none may have passed before it starts.
    const bool last = turn % ctx.size() == ctx.rank();
    if (!last) barrier.start();
    for (int polls = 0; polls < 50 && ctx.size() > 1; ++polls)
      if (!last) CHECK((barrier.active() || ctx.size() == 1));
    ctx.barrier();
    if (!last && ctx.size() > 1) CHECK(!barrier.test());
    ctx.barrier();
    if (last) barrier.start();
    barrier.wait();
  }
}

RANK_TEST("an allreduce explains its choice, live as off line") {
  for (const std::int64_t count : {std::int64_t{1}, std::int64_t{5000}}) {
    std::vector<float> in(static_cast<std::size_t>(count)), out(in.size());
    Allreduce live(ctx, in.data(), out.data(), count, DType::f32, ReduceOp::max);
    const std::string text = live.explain();
    INFO(text);
    CHECK(text.find("algorithm: ") != std::string::npos);
    CHECK(text.find("exchange") != std::string::npos);
    CHECK(text.find("ring") != std::string::npos);
    CHECK(text.find("<- chosen") != std::string::npos);
    CollectiveShape shape;
    shape.count = count;
    shape.type = DType::f32;
    shape.op = ReduceOp::max;
    if (const char* path = std::getenv("TASUKI_PATH"); path != nullptr) shape.path = path;
    const Planned planned = plan(machine_of(ctx), shape);
    CHECK(planned.explain(ctx.rank()).starts_with(text));
  }
}

RANK_TEST("wrong arguments of collectives are named on every rank") {
  const int n = ctx.size();
  const int last = n - 1;
  std::vector<double> in(64), out(64);
  const auto says = [&](const std::string& error, const std::string& words) {
    INFO(error);
    INFO(words);
    return error.find(words) != std::string::npos;
  };
  CHECK(says(error_of([&] { Reduce x(ctx, n, in.data(), out.data(), 4, DType::f64); }),
             "Reduce: rank 0: argument 'root' is " + std::to_string(n)));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), -3, DType::f64); }), "argument 'count' is -3"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, DType::f64, ReduceOp::band); }),
             "argument 'op' is band"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, DType::none); }), "argument 'type' is none"));
  const double* const missing = ctx.rank() == last ? nullptr : in.data();
  CHECK(says(error_of([&] { Allreduce x(ctx, missing, out.data(), 4, DType::f64); }),
             "Allreduce: rank " + std::to_string(last) + ": argument 'in' is null"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), in.data() + 3, 4, DType::f64); }),
             "arguments 'in' and 'out' overlap in memory; work in place with 'in_place'"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), in_place, 4, DType::f64); }),
             "argument 'out' is in_place, which only the other buffer may be"));
  CHECK(says(error_of([&] {
               Allgather x(ctx, in.data(), out.data(), Counts(static_cast<std::size_t>(n + 1), 1), DType::f64);
             }),
             "argument 'counts' has " + std::to_string(n + 1) + " entries"));
  CHECK(says(error_of([&] { Gather x(ctx, 0, in.data(), out.data(), Counts{}, DType::f64); }),
             "argument 'counts' has 0 entries"));
  CollectiveOptions options;
  options.algorithm = "fastest";
  CHECK(says(error_of([&] { Barrier x(ctx, options); }),
             "there is no algorithm 'fastest' for barrier; give one of auto, dissemination"));
  options.algorithm = "ring";
  options.chunk = 64;
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, DType::f64, ReduceOp::sum, options); }),
             "options 'trees', 'arity' and 'chunk' are for algorithms that have them; of allreduce none has"));
  options.algorithm = "auto";
  options.trees = 99;
  CHECK(says(error_of([&] { Reduce x(ctx, 0, in.data(), out.data(), 4, DType::f64, ReduceOp::sum, options); }),
             "option 'trees' is 99"));
  if (n == 1) return;
  const bool odd = ctx.rank() == last;
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), odd ? 5 : 4, DType::f64); }),
             "argument 'count' differs between ranks: rank 0 has 4, rank " + std::to_string(last) + " has 5"));
  CHECK(says(error_of([&] { Allreduce x(ctx, in.data(), out.data(), 4, odd ? DType::f32 : DType::f64); }),
             "argument 'type' differs between ranks"));
  CHECK(says(error_of([&] { Scan x(ctx, in.data(), out.data(), 4, DType::f64, odd ? ReduceOp::max : ReduceOp::sum); }),
             "argument 'op' differs between ranks"));
  CHECK(says(error_of([&] { Scan x(ctx, odd ? in_place : in.data(), out.data(), 4, DType::f64); }),
             "argument 'in_place' differs between ranks"));
  CHECK(says(error_of([&] { Scatter x(ctx, odd ? 1 : 0, in.data(), out.data(), 4, DType::f64); }),
             n == 2 || !odd || last == 1 ? "argument 'root' differs between ranks" : "argument 'root'"));
  CHECK(says(error_of([&] { Gather x(ctx, 0, in_place, out.data(), 4, DType::f64); }),
             "argument 'in' is in_place, which is for the root; rank 1 is not"));
  Counts send(static_cast<std::size_t>(n), 2), receive = send;
  if (odd) send[0] = 3;
  CHECK(says(error_of([&] { Alltoall x(ctx, in.data(), out.data(), send, receive, DType::f64); }),
             "Alltoall: rank 0: argument 'receive_counts' is 2 for rank " + std::to_string(last) +
                 ", whose 'send_counts' has 3 for this rank"));
}
