// What all peers on GPUs have in common, as far as it needs no CUDA.
#include "gpu/problem.hpp"

#include <fmt/format.h>
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <set>

#include "case.hpp"

namespace bench {

void finish_stream(const tasuki::Context& context) {
  finish_stream(context, gpu_stream(context));
}

void finish_stream(const tasuki::Context& context, tasuki::Stream stream) {
  try {
    tasuki::synchronize(context, stream);
  } catch (const std::exception& error) {
    end_job(context, error.what());
  }
}

void end_job(const tasuki::Context& context, const std::string& why) {
  fmt::print(stderr, "rank {}: {}\n", context.rank(), why);
  std::fflush(nullptr);
  MPI_Abort(context.comm(), 1);
  std::abort();
}

Peer gpu_peer(const std::string& name, std::function<RunnerPtr(const GpuCase&)> make) {
  Peer peer;
  peer.name = name;
  peer.gpu = std::move(make);
  return peer;
}

GpuRows rows_of(const tasuki::FieldBase& field, const GpuBox& box) {
  const std::int64_t element = field.element_bytes();
  const tasuki::Index strides = field.strides();
  GpuRows r;
  for (std::size_t d = 0; d < 3; ++d) r.offset += box.lo[d] * strides[d] * element;
  r.row = box.extent[2] * strides[2] * element;
  for (std::size_t d = 0; d < 2; ++d) {
    r.rows[d] = box.extent[d];
    r.stride[d] = strides[d] * element;
  }
  const auto shift = [&r] {  // the outer level becomes the inner one
    r.rows[1] = std::exchange(r.rows[0], 1);
    r.stride[1] = r.stride[0];
  };
  if (r.rows[1] == 1) shift();
  if (r.row == r.stride[1]) {
    r.row *= r.rows[1];
    shift();
    if (r.row == r.stride[1]) r.row *= std::exchange(r.rows[1], 1);
  }
  if (r.rows[0] > 1 && r.rows[1] * r.stride[1] == r.stride[0]) r.rows[1] *= std::exchange(r.rows[0], 1);
  for (int level = 0; level < 2; ++level) {
    if (r.rows[level] == 1) r.stride[level] = 0;
  }
  return r;
}

void together(const tasuki::Context& context, const std::function<void()>& act) {
  std::string complaint;
  try {
    act();
  } catch (const tasuki::Error& error) {
    complaint = fmt::format("rank {}: {}", context.rank(), error.what());
  }
  complaint = agree(context, complaint);
  if (!complaint.empty()) throw tasuki::Error(complaint);
}

bool everywhere(const tasuki::Context& context, bool here) {
  int all = here ? 1 : 0;
  MPI_Allreduce(MPI_IN_PLACE, &all, 1, MPI_INT, MPI_MIN, context.comm());
  return all != 0;
}

RunnerPtr unless_left_out(const GpuCase& problem, const std::string& peer, const std::function<RunnerPtr()>& make) {
  return unless_left_out(problem.context, peer, make);
}

RunnerPtr unless_left_out(const tasuki::Context& context, const std::string& peer,
                          const std::function<RunnerPtr()>& make) {
  RunnerPtr runner;
  std::string why;
  try {
    runner = make();
  } catch (const tasuki::Error& error) {
    why = error.what();
  }
  why = agree(context, why);
  if (why.empty()) return runner;
  static std::set<std::string> said;
  const std::string line = fmt::format("{}: left out: {}\n", peer, why);
  if (context.is_root() && said.insert(line).second) fmt::print(stderr, "{}", line);
  return nullptr;
}

}  // namespace bench
