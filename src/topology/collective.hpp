// Collective MPI calls that fail like every other wait instead of hanging when a rank has died.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topology/runtime.hpp"

namespace tasuki {

/// Waits until all requests have ended; `doing` says in the error what this rank was doing.
void wait_all(Runtime& runtime, std::span<const int> needs, std::vector<MPI_Request>& requests,
              const std::string& doing);

/// Starts nonblocking MPI calls on `buffers` with `begin(buffers, requests)` and waits for them. If that fails, MPI may
/// still write into the buffers later, so then they are never given back.
template <class Buffers, class Begin>
Buffers complete(Runtime& runtime, std::span<const int> needs, Buffers buffers, Begin&& begin,
                 const std::string& doing) {
  struct Flight {
    Buffers buffers;
    std::vector<MPI_Request> requests;
  };
  auto flight = std::make_unique<Flight>(Flight{std::move(buffers), {}});
  try {
    begin(flight->buffers, flight->requests);
    wait_all(runtime, needs, flight->requests, doing);
  } catch (const std::exception& error) {
    (void)flight.release();
    runtime.fail(error.what());  // has an effect after an interruption; other failures have said so already
    throw;
  }
  return std::move(flight->buffers);
}

/// Bitwise AND of each word over all ranks. Collective.
std::vector<std::uint64_t> and_over_ranks(Runtime& runtime, std::vector<std::uint64_t> words, const std::string& doing);

/// The texts of all ranks, in rank order. Collective.
std::vector<std::string> gather_texts(Runtime& runtime, const std::string& text, const std::string& doing);

}  // namespace tasuki
