// Life and death of contexts in an interpreter: exit, threads, signals, forks.
#include "owner.hpp"

#include <cxxabi.h>
#include <fmt/format.h>
#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <exception>

#include "tasuki/error.hpp"
#include "tasuki/planning.hpp"
#include "tasuki/wait_hooks.hpp"

namespace tasuki::python {
namespace {

// Never destroyed: static destructors run after MPI has ended.
std::vector<std::shared_ptr<Owner>>& owners() {
  static auto* all = new std::vector<std::shared_ptr<Owner>>;
  return *all;
}

bool forked = false;  // whether this process is a child that the process which uses Tasuki has forked

/// Takes the interpreter's lock back. An interpreter that has ended would unwind this thread through the core, which
/// the rest of the process still uses: the thread sleeps instead until the process is gone.
void take_lock(void* token) {
  try {
    PyEval_RestoreThread(static_cast<PyThreadState*>(token));
  } catch (const abi::__forced_unwind&) {
    for (;;) pause();
  }
}

void* begin_wait(const void* context) {
  if (Py_IsInitialized() == 0) return nullptr;  // MPI_Finalize is called after the interpreter has ended
  if (PyGILState_Check() == 0) return nullptr;  // a thread of C++, or one that gave the lock up itself
  if (Owner* owner = Owner::of(context)) owner->begin_wait();
  return PyEval_SaveThread();
}

void look(void* token) {
  if (token == nullptr) return;
  take_lock(token);
  const bool signalled = PyErr_CheckSignals() != 0;  // the error stays with this thread until the call returns
  PyEval_SaveThread();
  if (signalled) throw Interruption();
}

// Planning keeps the lock.
void look_while_planning() {
  if (PyGILState_Check() != 0 && PyErr_CheckSignals() != 0) throw Interruption();
}

void end_wait(const void* context, void* token) {
  if (token == nullptr) return;
  take_lock(token);
  if (Owner* owner = Owner::of(context)) owner->end_wait();
}

}  // namespace

thread_local int Owner::InFunction::depth_ = 0;

Member::Member(std::shared_ptr<Owner> owner) : owner_(std::move(owner)), number_(owner_->next_++) {
  owner_->members_.emplace(number_, this);
}

Member::~Member() {
  owner_->members_.erase(number_);
}

std::string Member::shown_as(const std::string& text) const {
  const char* end = owner_->closed() ? ", closed" : freed_ ? ", freed" : "";
  return fmt::format("<tasuki{}{}>", text, end);
}

std::shared_ptr<Owner> Owner::make(std::unique_ptr<Context> context) {
  owners().push_back(std::shared_ptr<Owner>(new Owner(std::move(context))));
  return owners().back();
}

Owner* Owner::of(const void* context) {
  for (const auto& owner : owners())
    if (owner->context_ != nullptr && owner->context_->id() == context) return owner.get();
  return nullptr;
}

bool Owner::any_with_others() {
  return !forked &&
         std::any_of(owners().begin(), owners().end(), [](const auto& owner) { return owner->context_->size() > 1; });
}

std::string Owner::text() const {
  if (closed()) return "<tasuki.Context, closed>";
  return fmt::format("<tasuki.Context rank {} of {}>", context_->rank(), context_->size());
}

void Owner::refuse() const {
  if (context_ == nullptr) throw Error("the context of this object has been closed; make a new one");
  if (InFunction::here())
    throw Error(
        fmt::format("rank {}: an operator's function uses Tasuki, which is driving the operation that calls it; it may "
                    "only combine its arrays",
                    context_->rank()));
  throw Error(
      fmt::format("rank {}: another thread of this process is waiting on the same context; one thread at a time "
                  "may use a context, so join that thread first or give this one a context of its own",
                  context_->rank()));
}

void Owner::agree(const std::string& operation, const std::function<void()>& check) const {
  agree(operation, [&](Named&) { check(); });
}

void Owner::agree(const std::string& operation, const std::function<void(Named&)>& check) const {
  Named values;
  check_and_settle([&] { check(values); },
                   [&](const std::string& complaint) { context().agree(operation, values.all(), complaint); });
}

void Owner::agree(const std::string& operation, std::span<const int> ranks, const std::function<void()>& check) const {
  check_and_settle(check, [&](const std::string& complaint) { context().agree(operation, {}, complaint, ranks); });
}

// `settle(complaint)` throws if this rank or another has one.
void Owner::check_and_settle(const std::function<void()>& check,
                             const std::function<void(const std::string&)>& settle) {
  std::string complaint;
  std::exception_ptr wrong_type;  // is what this rank raises; the others raise that it did
  try {
    check();
  } catch (const nb::builtin_exception& error) {
    wrong_type = std::current_exception();
    complaint = error.what();
  } catch (const std::exception& error) {  // a Python exception too: every rank must learn of it
    complaint = error.what();
  }
  try {
    settle(complaint);
  } catch (const Error&) {
    if (wrong_type) std::rethrow_exception(wrong_type);
    throw;
  }
}

// What dies in here may run Python's code, which finds the context closed, and may take other members along.
void Owner::let_go() noexcept {
  const std::unique_ptr<Context> last = std::move(context_);
  waiting_ = true;  // freeing may wait: what other threads drop meanwhile goes into the graveyard
  while (!members_.empty()) {
    Member* member = members_.rbegin()->second;
    members_.erase(std::prev(members_.end()));
    member->release();
  }
  waiting_ = false;
  bury();
}

void Owner::bury() noexcept {
  while (!graveyard_.empty()) const auto dead = std::exchange(graveyard_, {});
}

void Owner::close() {
  if (closed()) return;
  const int rank = context().rank();
  for (const auto& [number, member] : members_)
    if (const std::string why = member->in_use(); !why.empty())
      throw Error(fmt::format("Context.close: rank {}: {}", rank, why));
  const auto self = std::find_if(owners().begin(), owners().end(), [this](const auto& o) { return o.get() == this; });
  const std::shared_ptr<Owner> keep = *self;
  owners().erase(self);
  let_go();
}

void Owner::close_all() noexcept {
  if (forked) return;
  const auto waited_for =
      std::find_if(owners().begin(), owners().end(), [](const auto& owner) { return owner->waiting_; });
  if (waited_for != owners().end()) {
    std::fprintf(stderr, "tasuki: rank %d: the program ended while a thread waited; join threads before the end\n",
                 (*waited_for)->context_->rank());
    fail_all("its program ended while a thread waited");
    end_without_mpi();
  }
  while (!owners().empty()) {
    const std::shared_ptr<Owner> last = owners().back();
    owners().pop_back();
    if (last->waiting_) {
      new std::shared_ptr<Owner>(last);  // never destroyed: its thread goes on
    } else {
      last->let_go();
    }
  }
}

void Owner::fail_all(const std::string& why) {
  if (forked) return;
  for (const auto& owner : owners()) owner->context_->give_up(why);
}

void Owner::retire(std::shared_ptr<void> core) {
  if (forked) {
    new std::shared_ptr<void>(std::move(core));
  } else if (waiting_ || InFunction::here()) {
    graveyard_.push_back(std::move(core));
  }
}

void Owner::end_wait() {
  waiting_ = false;
  bury();
}

void install_wait_hooks() {
  pthread_atfork(nullptr, nullptr, [] { forked = true; });
  set_planning_look(look_while_planning);
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
