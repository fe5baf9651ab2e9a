// KernelHome: see home.hpp.
#include "kernels/home.hpp"

#include <atomic>
#include <utility>

#include "session/gpus.hpp"

namespace tasuki {

KernelHome& KernelHome::of(Runtime& runtime) {
  if (!runtime.kernels) runtime.kernels = std::make_shared<KernelHome>(runtime);
  return *runtime.kernels;
}

device::Stop KernelHome::stop(bool on_gpu) {
  if (!on_gpu) return {&abort_, &looked_};
  return {runtime_.gpus->abort_word(), runtime_.gpus->looked_word()};
}

void KernelHome::abort() {
  std::atomic_ref<std::uint32_t>(abort_).store(1);
  if (runtime_.gpus) runtime_.gpus->abort();
}

void KernelHome::tell_to_give_up(bool on_gpu) {
  std::atomic_ref<std::uint32_t>(on_gpu ? *runtime_.gpus->abort_word() : abort_).store(1);
}

std::shared_ptr<void> KernelHome::watch(bool on_gpu, std::function<void()> check) {
  if (on_gpu) return runtime_.gpus->watch(std::move(check));  // so that `synchronize` asks it, too
  const auto at = checks_->insert(checks_->end(), std::move(check));
  return {&*at, [checks = checks_, at](void*) { checks->erase(at); }};
}

void KernelHome::check() const {
  for (const auto& check : *checks_) check();
  if (runtime_.gpus) runtime_.gpus->check();
}

std::shared_ptr<void> KernelHome::serve() {
  return served_;
}

std::pair<std::uint64_t, std::shared_ptr<void>> KernelHome::add_handle(HandleFacts facts) {
  static std::atomic<std::uint64_t> last = 0;  // of the process, so that no context takes another's handle for its own
  const std::uint64_t id = last.fetch_add(1) + 1;
  auto& kept = (*handles_)[id] = std::move(facts);
  return {id, {&kept, [handles = handles_, id](void*) { handles->erase(id); }}};
}

const KernelHome::HandleFacts* KernelHome::handle(std::uint64_t id) const {
  const auto found = handles_->find(id);
  return found == handles_->end() ? nullptr : &found->second;
}

}  // namespace tasuki
