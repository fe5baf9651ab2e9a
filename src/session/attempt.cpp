// Attempt: see attempt.hpp. A message begins with a number that says whether its sender has failed.
#include "session/attempt.hpp"

#include <fmt/format.h>

#include <limits>

#include "session/collective.hpp"
#include "tasuki/error.hpp"

namespace tasuki {

namespace {

constexpr std::int64_t kFailed = 0;
constexpr std::int64_t kDone = 1;

std::string headed(std::int64_t state, const Encoder& content) {
  return Encoder().number(state).append(content).bytes();
}

// Splits a message. Whether its sender has failed.
bool has_failed(std::string& message) {
  static const std::size_t head = Encoder().number(kDone).bytes().size();
  const bool failed = Decoder(message).number(kFailed, kDone) == kFailed;
  message.erase(0, head);
  return failed;
}

void check_size(const std::string& message) {
  if (message.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    throw Error(fmt::format("what it tells another rank has {} bytes; 2 GiB are too many", message.size()));
}

}  // namespace

std::vector<std::string> Attempt::exchange(std::span<const int> peers, const Tell& tell) {
  std::vector<std::string> messages(peers.size());
  locally("describing a part to peers", [&] {
    for (std::size_t p = 0; p < peers.size(); ++p) {
      Encoder to;
      tell(p, to);
      messages[p] = headed(kDone, to);
      check_size(messages[p]);
    }
  });
  if (failing())
    for (std::string& message : messages) message = headed(kFailed, {});
  std::vector<std::string> answers = tasuki::exchange(runtime_, peers, messages);
  for (std::string& answer : answers)
    if (has_failed(answer)) peer_failed_ = true;
  if (failing()) answers.assign(peers.size(), {});
  return answers;
}

std::vector<std::string> Attempt::gather(const std::string& operation, const std::function<void(Encoder& to)>& tell,
                                         const std::string& doing) {
  std::string message;
  locally("describing a part to all ranks", [&] {
    Encoder to;
    tell(to);
    message = headed(kDone, to);
  });
  if (failing()) message = headed(kFailed, {});
  std::vector<std::string> answers = gather_texts(runtime_, message, doing);
  bool all = true;
  for (std::string& answer : answers) all = !has_failed(answer) && all;
  if (!all) settle(operation);  // throws on every rank
  return answers;
}

std::vector<std::uint64_t> Attempt::combine(const std::string& operation, std::vector<std::uint64_t> words,
                                            const std::string& doing) {
  words.push_back(failing() ? 0 : ~std::uint64_t{0});
  words = and_over_ranks(runtime_, words, doing);
  if (words.back() == 0) settle(operation);  // throws on every rank
  words.pop_back();
  return words;
}

void Attempt::complain_to(Agreement& agreement, const std::string& operation) const {
  if (!failure_) return;
  try {
    std::rethrow_exception(failure_);
  } catch (const std::exception& error) {
    if (runtime_.settings().agree) {
      agreement.complain(error);
      return;
    }
    const std::string text = fmt::format("{}: rank {}: {}", operation, runtime_.rank(), error.what());
    runtime_.fail(text);
    throw Error(text);
  }
}

void Attempt::settle(const std::string& operation) {
  Agreement outcome = everyone_ ? Agreement(runtime_, operation) : Agreement(runtime_, operation, peers_);
  if (failure_) {
    try {
      std::rethrow_exception(failure_);
    } catch (const std::exception& error) {
      outcome.complain(error);
    }
  }
  outcome.settle();
  if (failing())
    throw Error(fmt::format("rank {}: {}: a peer could not make it, and did not say why", runtime_.rank(), operation));
}

}  // namespace tasuki
