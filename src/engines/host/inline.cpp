// Engine `inline`: the calling thread does everything, inside start, test and wait.
//
//   start:  begin, progress        test, wait:  progress (they also drive other active operations:
//   session/progress.hpp)
#include "engines/engine.hpp"

namespace tasuki {
namespace {

class Inline final : public Engine {
 public:
  explicit Inline(Executor& executor) : executor_(executor) {}
  void start() override {
    executor_.begin();
    executor_.progress();
  }
  bool test() override { return executor_.progress(); }
  void stop() override { executor_.cancel(); }

 private:
  Executor& executor_;
};

const EngineRegistration registration{"inline", false, [](Executor& executor, Runtime&) -> std::unique_ptr<Engine> {
                                        return std::make_unique<Inline>(executor);
                                      }};

}  // namespace
}  // namespace tasuki
