// See world.hpp.
#include "world.hpp"

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <numeric>

#include "guard.hpp"
#include "objects.hpp"
#include "post.hpp"
#include "tasuki/error.hpp"
#include "whereabouts.hpp"
#include "xmp.h"

namespace tasuki::xmp {

namespace {

// It is not destroyed with the program's other objects: a program that exits without xmp_finalize ends at once.
World* the_world = nullptr;

// By the same ranks. As many as a program is likely to use in a loop; sections that change with every iteration must
// not pile up.
constexpr int kMostPrepared = 256;

void init(int* argc, char*** argv) {
  if (the_world != nullptr) throw Error("it was called before; call it once");
  int none = 0;
  char* nothing[] = {nullptr};
  char** no_arguments = nothing;
  Context context(argc == nullptr ? none : *argc, argv == nullptr ? no_arguments : *argv);
  the_world = new World(std::move(context));
  start_posts(the_world->context());
  start_answers(posts_comm());
}

void finalize() {
  world();
  forget_objects();
  end_answers();
  end_posts();
  delete the_world;
  the_world = nullptr;
}

}  // namespace

World::World(Context context) : context_(std::move(context)) {
  NodeShape all;
  all.extents = {context_.size()};
  all.ranks.resize(static_cast<std::size_t>(context_.size()));
  std::iota(all.ranks.begin(), all.ranks.end(), 0);
  executing_.push_back(std::move(all));
}

const Context& World::context(const std::vector<int>& ranks) {
  if (ranks == entire().ranks) return context_;
  const auto found = contexts_.find(ranks);
  if (found != contexts_.end()) return found->second;
  return contexts_.emplace(ranks, context_.subset(ranks)).first->second;
}

void World::leave() {
  if (executing_.size() == 1) refuse("there is no task to end; call it after xmp_task_begin, on the nodes of the task");
  executing_.pop_back();
}

std::shared_ptr<Work> World::find(const Key& key) const {
  const auto found = prepared_.find(key);
  return found == prepared_.end() ? nullptr : found->second.work;
}

void World::drop(std::vector<Key>::iterator which) {
  const auto found = prepared_.find(*which);
  --how_many_[found->second.ranks];
  prepared_.erase(found);
  order_.erase(which);
}

void World::keep(const Key& key, const std::vector<int>& ranks, std::shared_ptr<Work> work) {
  int& count = how_many_[ranks];
  if (count == kMostPrepared)
    drop(std::find_if(order_.begin(), order_.end(), [&](const Key& one) { return prepared_.at(one).ranks == ranks; }));
  ++count;
  works_.push_back(work);
  prepared_[key] = {std::move(work), ranks};
  order_.push_back(key);
}

void World::forget(std::int64_t array) {
  const auto takes_part = [array](const Work& work) {
    return std::find(work.arrays.begin(), work.arrays.end(), array) != work.arrays.end();
  };
  for (const auto& [id, list] : under_way_)
    for (const auto& work : list)
      if (work->active && takes_part(*work))
        refuse("the array takes part in what was started with async id {}; call xmp_wait_async first", id);
  std::erase_if(works_, [](const auto& work) { return work.expired(); });
  for (const auto& one : works_)
    if (const auto work = one.lock(); takes_part(*work)) work->stale = true;
  for (std::size_t i = 0; i < order_.size();) {
    if (takes_part(*prepared_.at(order_[i]).work))
      drop(order_.begin() + static_cast<std::ptrdiff_t>(i));
    else
      ++i;
  }
}

std::string World::verify() {
  std::string report;
  for (const Key& key : order_) {
    Work& work = *prepared_.at(key).work;
    for (const Operation& operation : work.operations) {
      if (work.verified) break;
      if (const VerifyReport one = tasuki::verify(operation); !one.ok()) report += one.text();
    }
    work.verified = true;
  }
  return report;
}

void World::start(int id, const std::shared_ptr<Work>& work) {
  work->start();
  started(id, work);
}

void World::wait(int id) {
  const auto found = under_way_.find(id);
  if (found == under_way_.end()) return;
  const auto list = std::move(found->second);
  under_way_.erase(found);
  for (const auto& work : list)
    if (work->active) work->wait();
}

bool World::test(int id) {
  const auto found = under_way_.find(id);
  if (found == under_way_.end()) return true;
  bool all = true;
  for (const auto& work : found->second) all = (!work->active || work->test()) && all;
  if (all) under_way_.erase(found);
  return all;
}

void World::progress() {
  for (const auto& [id, list] : under_way_)
    for (const auto& work : list)
      if (work->active) work->test();
}

Stream World::queue(int number) const {
  const auto found = queues_.find(number);
  if (found == queues_.end()) refuse("queue {} has no stream; call xacc_set_queue({}, stream) first", number, number);
  return found->second;
}

bool started() {
  return the_world != nullptr;
}

World& world() {
  if (the_world == nullptr)
    throw Error("the run-time library is not running; call xmp_init first, and this before xmp_finalize");
  return *the_world;
}

void agree(const Context& context, const std::string& doing, const std::string& complaint,
           const std::vector<std::pair<std::string, std::string>>& values) {
  context.agree(doing, values, complaint);
}

}  // namespace tasuki::xmp

using namespace tasuki::xmp;  // NOLINT(google-build-using-namespace)

extern "C" {

int xmp_init(int argc, char** argv) {
  return guarded("xmp_init", [&] { init(&argc, &argv); });
}

int xmp_init_mpi(int* argc, char*** argv) {
  return guarded("xmp_init_mpi", [&] { init(argc, argv); });
}

int xmp_finalize(void) {
  return guarded("xmp_finalize", finalize);
}

int xmp_finalize_mpi(void) {
  return guarded("xmp_finalize_mpi", finalize);
}

void xmp_exit(int status) {
  int running = 0;
  MPI_Initialized(&running);
  if (running != 0) MPI_Abort(MPI_COMM_WORLD, status);
  std::exit(status);
}

int xmp_verify(const char** report) {
  return guarded("xmp_verify", [&] {
    static std::string text;
    given(report, "report");
    if (world().executing().ranks != world().entire().ranks)
      refuse("it is called within a task; call it between tasks");
    text = world().verify();
    *report = text.c_str();
  });
}

int xmp_wait_async(int count, const int ids[]) {
  return guarded("xmp_wait_async", [&] {
    if (count > 0) given(ids, "ids");
    for (int i = 0; i < count; ++i) world().wait(ids[i]);
  });
}

int xmp_test_async(int id) {
  int ended = 0;
  guarded("xmp_test_async", [&] { ended = world().test(id) ? 1 : 0; });
  return ended;
}
}
