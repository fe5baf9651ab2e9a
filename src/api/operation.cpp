// The C interface of operations: running them and looking at them.
#include <fmt/format.h>

#include "api/nouns.hpp"

using namespace tasuki;
using namespace tasuki::api;

namespace {

Operation& running(tasuki_operation operation) {
  return get(operation, "operation").operation;
}

Stream stream_of(void* stream) {
  return static_cast<Stream>(stream);
}

void hand_out(const VerifyReport& found, int* ok, char** report) {
  char* const text = report == nullptr ? nullptr : text_for_caller(found.text());
  *ok = found.ok() ? 1 : 0;
  if (report != nullptr) *report = text;
}

Plan read_plan(const char* text) {
  const std::string_view whole(text);
  const std::size_t first = whole.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && whole[first] == '{' ? plan_from_json(whole) : plan_from_text(whole);
}

}  // namespace

tasuki_status tasuki_start(tasuki_operation operation) {
  return guarded("tasuki_start", [&] { running(operation).start(); });
}

tasuki_status tasuki_test(tasuki_operation operation, int* ended) {
  return guarded("tasuki_test", [&] {
    Operation& one = running(operation);
    given(ended, "ended");
    *ended = one.test() ? 1 : 0;
  });
}

tasuki_status tasuki_wait(tasuki_operation operation) {
  return guarded("tasuki_wait", [&] { running(operation).wait(); });
}

tasuki_status tasuki_stream_start(tasuki_operation operation, void* stream) {
  return guarded("tasuki_stream_start", [&] { running(operation).start(stream_of(stream)); });
}

tasuki_status tasuki_stream_wait(tasuki_operation operation, void* stream) {
  return guarded("tasuki_stream_wait", [&] { running(operation).wait(stream_of(stream)); });
}

tasuki_status tasuki_stream_run(tasuki_operation operation, void* stream) {
  return guarded("tasuki_stream_run", [&] { running(operation).run(stream_of(stream)); });
}

tasuki_status tasuki_active(tasuki_operation operation, int* active) {
  return guarded("tasuki_active", [&] { *given(active, "active") = running(operation).active() ? 1 : 0; });
}

tasuki_status tasuki_operation_free(tasuki_operation* operation) {
  return let_go("tasuki_operation_free", operation, "operation", [](AnyOperation& one) { one.operation.free(); });
}

tasuki_status tasuki_overlap(tasuki_operation halo, tasuki_field field, const tasuki_width* width,
                             tasuki_compute compute, void* data) {
  return guarded("tasuki_overlap", [&] {
    AnyOperation& one = get(halo, "halo");
    const AnyField& over = get(field, "field");
    given(width, "width");
    given(compute, "compute");
    if (!one.halo) throw Failure(TASUKI_BAD_HANDLE, "argument 'halo' is another operation; it must be a halo");
    overlap(*one.halo, over, width_from(*width), [&](const Box& box) {
      const tasuki_box theirs = box_for_caller(box);
      compute(&theirs, data);
    });
  });
}

tasuki_status tasuki_explain(tasuki_operation operation, char** text) {
  return guarded("tasuki_explain", [&] { set_text(text, "text", running(operation).explain()); });
}

tasuki_status tasuki_plan_text(tasuki_operation operation, char** text) {
  return guarded("tasuki_plan_text", [&] { set_text(text, "text", to_text(running(operation).plan())); });
}

tasuki_status tasuki_plan_json(tasuki_operation operation, char** json) {
  return guarded("tasuki_plan_json", [&] { set_text(json, "json", to_json(running(operation).plan())); });
}

tasuki_status tasuki_plan_memory(tasuki_operation operation, int64_t* bytes) {
  return guarded("tasuki_plan_memory", [&] { *given(bytes, "bytes") = running(operation).memory(); });
}

tasuki_status tasuki_verify(tasuki_operation operation, int epochs, int* ok, char** report) {
  return guarded("tasuki_verify", [&] {
    const Operation& one = running(operation);
    agree("tasuki_verify", one.context(), [&] { given(ok, "ok"); });
    hand_out(verify(one, epochs), ok, report);
  });
}

tasuki_status tasuki_verify_plans(int count, const char* const* plans, int epochs, int* ok, char** report) {
  return guarded("tasuki_verify_plans", [&] {
    given(ok, "ok");
    std::vector<Plan> read;
    for (const char* text : list_from(plans, count, "plans")) read.push_back(read_plan(given(text, "plans")));
    hand_out(verify(read, epochs), ok, report);
  });
}
