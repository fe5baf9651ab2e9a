// Nonblocking collectives, and pairwise exchanges, driven by Tasuki's own wait.
#include "topology/collective.hpp"

#include <limits>
#include <numeric>
#include <utility>

#include <fmt/format.h>

#include "support/mpi.hpp"
#include "tasuki/error.hpp"

namespace tasuki {
namespace {

constexpr int kSizeTag = 1;  // in the communicator that is otherwise for collectives only
constexpr int kBlobTag = 2;

struct Blobs {
  std::vector<std::int64_t> out_sizes, in_sizes;
  std::vector<std::string> out, in;
};

struct Texts {
  std::string own;
  std::vector<int> sizes, offsets;
  std::vector<char> all;
};

}  // namespace

void wait_all(Runtime& runtime, std::span<const int> needs, std::vector<MPI_Request>& requests,
              const std::string& doing) {
  const auto poll = [&] {
    int done = 0;
    check_mpi(MPI_Testall(static_cast<int>(requests.size()), requests.data(), &done, MPI_STATUSES_IGNORE),
              "MPI_Testall");
    return done != 0;
  };
  wait_until(runtime, needs, poll, [&] { return fmt::format("rank {}: {}", runtime.rank(), doing); });
}

std::vector<std::uint64_t> and_over_ranks(Runtime& runtime, std::vector<std::uint64_t> words,
                                          const std::string& doing) {
  const auto begin = [&](std::vector<std::uint64_t>& buffer, std::vector<MPI_Request>& requests) {
    check_mpi(MPI_Iallreduce(MPI_IN_PLACE, buffer.data(), static_cast<int>(buffer.size()), MPI_UINT64_T, MPI_BAND,
                             runtime.comm(), &requests.emplace_back(MPI_REQUEST_NULL)),
              "MPI_Iallreduce");
  };
  return complete(runtime, runtime.everyone(), std::move(words), begin, doing);
}

std::vector<std::string> gather_texts(Runtime& runtime, const std::string& text, const std::string& doing) {
  const int ranks = runtime.size();
  Texts texts;
  texts.own = text.substr(0, std::numeric_limits<int>::max() / ranks);  // so that the sum fits MPI's counts
  texts.sizes.assign(ranks, 0);
  texts.sizes[runtime.rank()] = static_cast<int>(texts.own.size());
  texts = complete(
      runtime, runtime.everyone(), std::move(texts),
      [&](Texts& t, std::vector<MPI_Request>& requests) {
        check_mpi(MPI_Iallgather(MPI_IN_PLACE, 1, MPI_INT, t.sizes.data(), 1, MPI_INT, runtime.comm(),
                                 &requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Iallgather");
      },
      doing);
  texts.offsets.assign(ranks, 0);
  std::partial_sum(texts.sizes.begin(), texts.sizes.end() - 1, texts.offsets.begin() + 1);
  texts.all.resize(texts.offsets.back() + texts.sizes.back());
  texts = complete(
      runtime, runtime.everyone(), std::move(texts),
      [&](Texts& t, std::vector<MPI_Request>& requests) {
        check_mpi(MPI_Iallgatherv(t.own.data(), t.sizes[runtime.rank()], MPI_CHAR, t.all.data(), t.sizes.data(),
                                  t.offsets.data(), MPI_CHAR, runtime.comm(), &requests.emplace_back(MPI_REQUEST_NULL)),
                  "MPI_Iallgatherv");
      },
      doing);
  std::vector<std::string> result;
  for (int rank = 0; rank < ranks; ++rank)
    result.emplace_back(texts.all.data() + texts.offsets[rank], texts.sizes[rank]);
  return result;
}

std::vector<std::string> exchange(Runtime& runtime, std::span<const int> peers, std::span<const std::string> blobs) {
  if (peers.size() != blobs.size())
    throw Error(fmt::format("exchange: rank {} has {} blobs for {} peers", runtime.rank(), blobs.size(), peers.size()));
  Blobs data;
  data.out.assign(blobs.begin(), blobs.end());
  data.in_sizes.assign(peers.size(), 0);
  for (const std::string& blob : data.out) {
    if (blob.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
      throw Error(
          fmt::format("exchange: rank {} has a blob of {} bytes; 2 GiB are too many", runtime.rank(), blob.size()));
    data.out_sizes.push_back(static_cast<std::int64_t>(blob.size()));
  }

  const MPI_Comm comm = runtime.comm();
  const auto transfer = [&](std::vector<MPI_Request>& requests, int tag, auto receive, auto send) {
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const auto [in, in_bytes] = receive(i);
      check_mpi(MPI_Irecv(in, in_bytes, MPI_BYTE, peers[i], tag, comm, &requests.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Irecv");
    }
    for (std::size_t i = 0; i < peers.size(); ++i) {
      const auto [out, out_bytes] = send(i);
      check_mpi(MPI_Isend(out, out_bytes, MPI_BYTE, peers[i], tag, comm, &requests.emplace_back(MPI_REQUEST_NULL)),
                "MPI_Isend");
    }
  };
  const auto sizes = [&](Blobs& d, std::vector<MPI_Request>& requests) {
    const auto one = [](std::int64_t& size) { return std::pair<void*, int>(&size, sizeof size); };
    transfer(
        requests, kSizeTag, [&](std::size_t i) { return one(d.in_sizes[i]); },
        [&](std::size_t i) { return one(d.out_sizes[i]); });
  };
  const auto contents = [&](Blobs& d, std::vector<MPI_Request>& requests) {
    const auto one = [](std::string& blob) { return std::pair<void*, int>(blob.data(), blob.size()); };
    d.in.resize(d.in_sizes.size());
    for (std::size_t i = 0; i < d.in.size(); ++i) d.in[i].resize(d.in_sizes[i]);
    transfer(
        requests, kBlobTag, [&](std::size_t i) { return one(d.in[i]); }, [&](std::size_t i) { return one(d.out[i]); });
  };
  const std::string doing = "exchanging descriptions with neighbours";
  data = complete(runtime, peers, std::move(data), sizes, doing);
  return complete(runtime, peers, std::move(data), contents, doing).in;
}

}  // namespace tasuki
