// The program's ranks, who executes now, and what is under way.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "shape.hpp"
#include "tasuki/context.hpp"
#include "tasuki/device.hpp"
#include "tasuki/machine.hpp"
#include "work.hpp"
#include "xacc_translated.h"

namespace tasuki::xmp {

/// What identifies a prepared communication on this rank: who takes part, and its arguments.
using Key = std::pair<std::vector<std::int64_t>, std::string>;

class World {
 public:
  explicit World(Context context);

  int rank() const { return context_.rank(); }
  int size() const { return context_.size(); }
  const Context& context() const { return context_; }
  /// Of these ranks in this order, of which this one is one. Made when it is first asked for: collective over them.
  const Context& context(const std::vector<int>& ranks);

  const NodeShape& executing() const { return executing_.back(); }
  const NodeShape& entire() const { return executing_.front(); }
  void enter(NodeShape nodes) { executing_.push_back(std::move(nodes)); }
  void leave();

  /// Prepared communication by what it was asked with. Null: there is none.
  std::shared_ptr<Work> find(const Key& key) const;
  /// `ranks` have made it together, and each of them keeps it: what was made by the same ranks is forgotten on all of
  /// them at once when there is too much, whatever else each of them has made in tasks.
  void keep(const Key& key, const std::vector<int>& ranks, std::shared_ptr<Work> work);
  /// Forgets what an array takes part in, and marks it as stale. Throws `Error` if some of it is under way.
  void forget(std::int64_t array);

  /// What the verifier says of all that was prepared since it was last asked; empty: nothing. Collective.
  std::string verify();

  /// Starts the work, which `wait_async` of the id ends.
  void start(int id, const std::shared_ptr<Work>& work);
  void started(int id, const std::shared_ptr<Work>& work) { under_way_[id].push_back(work); }
  void wait(int id);
  bool test(int id);
  /// Has all that is under way go on.
  void progress();

  void set_queue(int queue, Stream stream) { queues_[queue] = stream; }
  Stream queue(int number) const;
  const std::map<int, Stream>& queues() const { return queues_; }
  /// Where translated programs run what has no queue: the default stream, unless they record an iteration.
  Stream default_stream() const {
    const auto found = queues_.find(XACC_DEFAULT);
    return found == queues_.end() ? nullptr : found->second;
  }
  /// A stream beside the default stream and the queues. Throws where there is no GPU.
  Fork& beside() {
    if (!beside_) beside_.emplace();
    return *beside_;
  }
  bool travels_beside = false;  ///< what runs there has yet to be joined

 private:
  Context context_;
  std::vector<NodeShape> executing_;
  std::map<std::vector<int>, Context> contexts_;
  struct Prepared {
    std::shared_ptr<Work> work;
    std::vector<int> ranks;
  };
  std::map<Key, Prepared> prepared_;
  std::vector<Key> order_;                    // in which they were prepared
  std::map<std::vector<int>, int> how_many_;  // are prepared by these ranks
  void drop(std::vector<Key>::iterator which);
  std::vector<std::weak_ptr<Work>> works_;  // all that somebody still has
  std::map<int, std::vector<std::shared_ptr<Work>>> under_way_;
  std::map<int, Stream> queues_;
  std::optional<Fork> beside_;
};

bool started();
World& world();  ///< Throws `Error` before xmp_init and after xmp_finalize.

/// Has the ranks of `context` agree on what they are about to do, and on whether each of them can: a complaint of one
/// is thrown by all. Collective.
void agree(const Context& context, const std::string& doing, const std::string& complaint,
           const std::vector<std::pair<std::string, std::string>>& values = {});

}  // namespace tasuki::xmp
