// What an operation is underneath: a plan, an executor and an engine, and how one is prepared from a description.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engines/engine.hpp"
#include "planner/planner.hpp"
#include "tasuki/operation.hpp"

namespace tasuki {

/// What an operation must say about itself to be prepared. The same on all ranks, except for memory and moves.
struct Description {
  std::string name;  ///< `halo p,q`
  std::vector<UserBuffer> buffers;
  std::vector<Move> moves;  ///< that leave or reach this rank
  std::function<void(Composer&)> compose = compose_links;
  /// Arguments the ranks must agree on; a complaint of this rank may be in it already. Checked first.
  Agreement agreement;
  std::vector<std::shared_ptr<void>> keep;  ///< user objects that live as long as the operation
};

class Operation::State final : public Progressing {
 public:
  State(const Context& context, Description description, const OperationOptions& options);  ///< Collective.
  ~State();
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void start();
  bool test();
  void wait();
  void enqueue(Stream stream, int parts);
  void free();
  void progress() override;

  bool active() const { return active_; }
  const std::string& explanation() const { return explanation_; }
  const Plan& plan() const;
  std::int64_t memory() const { return memory_; }
  const Context& context() const { return context_; }

 private:
  void check_alive(const char* call) const;
  void check_host(const char* call) const;
  void check_alternation();
  void ended();

  Context context_;
  std::string name_;
  std::vector<UserBuffer> buffers_;
  std::vector<std::shared_ptr<void>> keep_;
  std::vector<int> peers_;
  std::vector<int> first_copy_;  ///< alternating buffers: the copy of epoch 1
  std::string explanation_;
  std::int64_t memory_ = 0;
  std::unique_ptr<Executor> executor_;
  std::unique_ptr<Engine> engine_;
  std::uint64_t epoch_ = 0;
  bool active_ = false;
  bool in_stream_ = false;  ///< the active epoch was started in a stream
  Memory where_ = Memory::host;
  bool driving_ = false;
};

}  // namespace tasuki
