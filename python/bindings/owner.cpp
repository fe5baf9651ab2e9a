// Life and death of contexts in an interpreter: exit, threads, signals.
#include "owner.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "tasuki/error.hpp"
#include "tasuki/wait_hooks.hpp"
#include "topology/runtime.hpp"

namespace tasuki::python {
namespace {

// Never destroyed: static destructors run after MPI has ended.
std::vector<std::shared_ptr<Owner>>& owners() {
  static auto* all = new std::vector<std::shared_ptr<Owner>>;
  return *all;
}

void* begin_wait(Runtime& runtime) {
  if (PyGILState_Check() == 0) return nullptr;  // a thread of C++, or one that gave the lock up itself
  if (Owner* owner = Owner::of(runtime)) owner->begin_wait();
  return PyEval_SaveThread();
}

void look(void* token) {
  if (token == nullptr) return;
  PyEval_RestoreThread(static_cast<PyThreadState*>(token));
  const bool signalled = PyErr_CheckSignals() != 0;  // the error stays with this thread until the call returns
  PyEval_SaveThread();
  if (signalled) throw Interruption();
}

void end_wait(Runtime& runtime, void* token) {
  if (token == nullptr) return;
  PyEval_RestoreThread(static_cast<PyThreadState*>(token));
  if (Owner* owner = Owner::of(runtime)) owner->end_wait();
}

}  // namespace

Member::Member(std::shared_ptr<Owner> owner) : owner_(std::move(owner)), number_(owner_->next_++) {
  owner_->members_.emplace(number_, this);
}

Member::~Member() {
  owner_->members_.erase(number_);
}

std::shared_ptr<Owner> Owner::make(std::unique_ptr<Context> context) {
  owners().push_back(std::shared_ptr<Owner>(new Owner(std::move(context))));
  return owners().back();
}

Owner* Owner::of(const Runtime& runtime) {
  for (const auto& owner : owners())
    if (owner->context_ != nullptr && &owner->context_->runtime() == &runtime) return owner.get();
  return nullptr;
}

bool Owner::any_with_others() {
  return std::any_of(owners().begin(), owners().end(), [](const auto& owner) { return owner->context_->size() > 1; });
}

void Owner::refuse() const {
  if (context_ == nullptr) throw Error("the context of this object has been closed; make a new one");
  throw Error(
      fmt::format("rank {}: another thread of this process is waiting on the same context; one thread at a time "
                  "may use a context, so join that thread first or give this one a context of its own",
                  context_->rank()));
}

void Owner::agree(const std::string& operation, const std::function<void()>& check) const {
  Agreement agreement(runtime(), operation);
  try {
    check();
  } catch (const std::exception& error) {  // a Python exception too: every rank must learn of it
    agreement.complain(error.what());
  }
  agreement.check();
}

void Owner::let_go() noexcept {
  for (auto at = members_.rbegin(); at != members_.rend(); ++at) at->second->release();
  graveyard_.clear();
  context_.reset();
}

void Owner::close() {
  agree("Context.close", [this] {
    for (const auto& [number, member] : members_)
      if (const std::string why = member->in_use(); !why.empty()) throw Error(why);
  });
  const auto self = std::find_if(owners().begin(), owners().end(), [this](const auto& o) { return o.get() == this; });
  const std::shared_ptr<Owner> keep = *self;
  owners().erase(self);
  let_go();
}

void Owner::close_all() noexcept {
  while (!owners().empty()) {
    const std::shared_ptr<Owner> last = owners().back();
    last->let_go();  // its waits still find it
    owners().pop_back();
  }
}

void Owner::fail_all(const std::string& why) {
  for (const auto& owner : owners()) owner->context_->runtime().fail(why);
}

void Owner::retire(std::shared_ptr<void> core) {
  if (waiting_) graveyard_.push_back(std::move(core));
}

void Owner::end_wait() {
  waiting_ = false;
  const auto dead = std::exchange(graveyard_, {});
}

void install_wait_hooks() {
  set_wait_hooks({.begin = begin_wait, .look = look, .end = end_wait});
}

void end_without_mpi() {
  // The last to be registered is the first to be called, so this comes before mpi4py's MPI_Finalize.
  Py_AtExit([] {
    std::fflush(nullptr);
    _exit(1);
  });
}

}  // namespace tasuki::python
