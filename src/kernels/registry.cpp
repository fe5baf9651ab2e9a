// KernelRegistry: see registry.hpp.
#include "kernels/registry.hpp"

#include <sched.h>

#include <atomic>
#include <utility>

#include "session/gpus.hpp"

namespace tasuki {

KernelRegistry& KernelRegistry::of(Runtime& runtime) {
  if (!runtime.kernels) runtime.kernels = std::make_shared<KernelRegistry>(runtime);
  return *runtime.kernels;
}

device::Stop KernelRegistry::stop(bool on_gpu) {
  if (!on_gpu) return {&abort_, &looked_};
  return {runtime_.gpus->abort_word(), runtime_.gpus->looked_word()};
}

void KernelRegistry::abort() {
  std::atomic_ref<std::uint32_t>(abort_).store(1);
  if (runtime_.gpus) runtime_.gpus->abort();
}

void KernelRegistry::request_stop(bool on_gpu) {
  std::atomic_ref<std::uint32_t>(on_gpu ? *runtime_.gpus->abort_word() : abort_).store(1);
}

std::shared_ptr<void> KernelRegistry::watch(bool on_gpu, std::function<void()> check) {
  if (on_gpu) return runtime_.gpus->watch(std::move(check));  // so that `synchronize` asks it, too
  const auto at = checks_->insert(checks_->end(), std::move(check));
  return {&*at, [checks = checks_, at](void*) { checks->erase(at); }};
}

void KernelRegistry::check() const {
  for (const auto& check : *checks_) check();
  if (runtime_.gpus) runtime_.gpus->check();
}

std::shared_ptr<void> KernelRegistry::serve() {
  return served_;
}

namespace {
// Numbers begin at one that is unlikely among a program's own, so that a launch finds them in the bytes of a struct. Of
// the process, so that no context takes another's for its own.
constexpr std::uint32_t kFirstNumber = 0x7a5c'1000;
constexpr std::uint32_t kKinds = 4;  // the number's last bits
std::atomic<std::uint32_t> next_number = kFirstNumber;
}  // namespace

void await_users(const KernelUsers& users) {
  while (users->load(std::memory_order_acquire) > 0) sched_yield();
}

std::pair<std::uint32_t, std::shared_ptr<void>> KernelRegistry::add(Passed kind, Facts facts) {
  const std::uint32_t number = next_number.fetch_add(kKinds) + static_cast<std::uint32_t>(kind);
  auto& kept = (*passed_)[number] = std::move(facts);
  return {number, {&kept, [passed = passed_, number](void*) { passed->erase(number); }}};
}

const KernelRegistry::Facts* KernelRegistry::find(std::uint32_t number) const {
  const auto found = passed_->find(number);
  return found == passed_->end() ? nullptr : &found->second;
}

bool KernelRegistry::is_number(std::uint32_t number) {
  return number >= kFirstNumber && number < next_number.load();
}

Passed KernelRegistry::kind_of(std::uint32_t number) {
  return static_cast<Passed>(number % kKinds);
}

}  // namespace tasuki
