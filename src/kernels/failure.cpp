// Texts of failures: who, peer, what, expected and found, and what to do.
#include "kernels/failure.hpp"

#include <fmt/format.h>

#include "tasuki/error.hpp"
#include "tasuki/kernel.hpp"

namespace tasuki {
namespace {

using device::Call;
using device::Failure;
using device::Reason;

std::string tag_text(int tag) {
  return tag == device::kAnyTag ? "any tag" : fmt::format("tag {}", tag);
}

const char* name_of(Call call) {
  switch (call) {
    case Call::failed:
      return "failed";
    case Call::put:
      return "put";
    case Call::put_with_signal:
      return "put_with_signal";
    case Call::signal:
      return "signal";
    case Call::wait_signal:
      return "wait_signal";
    case Call::put_word:
      return "put_word";
    case Call::wait_word:
      return "wait_word";
    case Call::put_packet:
      return "put_packet";
    case Call::wait_packet:
      return "wait_packet";
    case Call::all_to_all:
      return "all_to_all";
    case Call::allreduce:
      return "allreduce";
    case Call::barrier:
    case Call::grid_barrier:
      return "barrier";
    case Call::isend:
      return "isend";
    case Call::irecv:
      return "irecv";
    case Call::wait_send:
    case Call::wait_receive:
    case Call::wait_host_send:
    case Call::wait_host_receive:
      return "wait";
    case Call::ask:
      return "isend, irecv or echo";
  }
  return "a call";
}

std::string peer_text(int peer) {
  return peer == device::kAnyRank ? "any rank" : fmt::format("rank {}", peer);
}

/// Of a call that has one of a number of places: how the argument is called, and the option that says how many.
struct Place {
  const char* argument;
  const char* option;
};
Place place_of(Call call) {
  switch (call) {
    case Call::put_word:
    case Call::wait_word:
      return {"slot", "words"};
    case Call::put_packet:
    case Call::wait_packet:
      return {"slot", "packets"};
    case Call::all_to_all:
    case Call::allreduce:
      return {"which", "exchanges"};
    case Call::barrier:
    case Call::grid_barrier:
      return {"which", "barriers"};
    default:
      return {"slot", "signals"};
  }
}

/// How the argument is called that names the other rank.
const char* peer_argument(Call call) {
  switch (call) {
    case Call::wait_signal:
    case Call::wait_word:
    case Call::wait_packet:
    case Call::irecv:
      return "from";
    default:
      return "to";
  }
}

/// What was waited for.
std::string awaited(const Failure& f) {
  switch (f.call) {
    case Call::failed:
      return "failed";
    case Call::wait_signal:
      return fmt::format("wait_signal: signal {} of rank {} did not come: it is at {}, {} was waited for", f.index,
                         f.peer, f.found, f.expected);
    case Call::wait_word:
      return fmt::format("wait_word: word {} of rank {} did not come: its number is {}, {} was waited for", f.index,
                         f.peer, f.found, f.expected);
    case Call::wait_packet:
      return fmt::format(
          "wait_packet: packet {} of rank {} did not come: the number of a line of it is {}, {} was waited for",
          f.index, f.peer, f.found, f.expected);
    case Call::all_to_all:
    case Call::allreduce:
      return fmt::format("{} by exchange {}: the words of rank {} did not come: their number is {}, this is time {}",
                         name_of(f.call), f.index, f.peer, f.found, f.expected);
    case Call::barrier:
      return fmt::format("barrier {}: rank {} did not come: it has been there {} times, this is time {}", f.index,
                         f.peer, f.found, f.expected);
    case Call::grid_barrier:
      return fmt::format("barrier {} of all blocks: not all blocks of this rank have come, or were let go", f.index);
    case Call::isend:
      return fmt::format(
          "isend to rank {} with {}: there is no place for message {}, for of those before it rank {} has not received "
          "number {}; receive more over there, or raise MessagesOptions::depth, which is {}",
          f.peer, tag_text(f.index), f.expected, f.peer, f.found, f.more);
    case Call::ask:
      if (f.expected == 0) return "echo: the process's thread did not answer";
      return fmt::format(
          "isend to or irecv from {} with {}: {} messages through the host have not ended, and no more may be "
          "under way; wait for older ones first, or raise MessagesOptions::by_host",
          peer_text(f.peer), tag_text(f.index), f.expected);
    case Call::wait_host_send:
      return fmt::format("wait for a message to rank {} with {}, which goes through the host: MPI has not ended it",
                         f.peer, tag_text(f.index));
    case Call::wait_host_receive:
      return fmt::format("wait for a message from {} with {}, which comes through the host: it did not come",
                         peer_text(f.peer), tag_text(f.index));
    case Call::wait_send:
      return fmt::format("wait for a message to rank {} with {}: rank {} did not receive it", f.peer, tag_text(f.index),
                         f.peer);
    default: {
      std::string text = fmt::format("wait for a message from rank {} with {}: it did not come; {} messages have",
                                     f.peer, tag_text(f.index), f.found);
      if (f.expected > 0)
        text += fmt::format(", {} of which no receive takes (the oldest has tag {})", f.expected,
                            static_cast<std::uint32_t>(f.more));
      if (const std::uint64_t others = f.more >> 32; others > 0)
        text += fmt::format(
            "; other receives from that rank that have not been waited for, perhaps by an earlier kernel: {}, of which "
            "older ones take messages first",
            others);
      return text;
    }
  }
}

std::string what(const Failure& f, const device::Team& team) {
  const char* const call = name_of(f.call);
  switch (f.reason) {
    case Reason::none:
      return fmt::format("{}: something has failed", call);
    case Reason::deadline:
      return fmt::format(
          "{}: nine tenths of the deadline, {:.3g} s, have passed; TASUKI_DEADLINE or Context::set_deadline allow more",
          awaited(f), static_cast<double>(team.deadline) * 1e-9);
    case Reason::aborted:
      return fmt::format("{}: the host has ended its kernels' waits", awaited(f));
    case Reason::peer:
      if (f.peer == device::kAnyRank && f.call == Call::irecv)
        return "irecv: argument 'from' is kAnyRank, which needs MessagesOptions::any_source and other ranks";
      return fmt::format("{}: argument '{}' is {}, but the context has ranks 0 to {}", call, peer_argument(f.call),
                         f.peer, team.ranks - 1);
    case Reason::slot: {
      const Place place = place_of(f.call);
      if (f.index < 0)
        return fmt::format("{}: argument '{}' is {}; it must be 0 or more", call, place.argument, f.index);
      return fmt::format("{}: argument '{}' is {}, but there are {} {}; raise '{}' of the options", call,
                         place.argument, f.index, f.expected, place.option, place.option);
    }
    case Reason::window:
      return fmt::format("{} to rank {}: bytes from {} on, {} of them, do not lie in the window of {} bytes", call,
                         f.peer, f.expected, f.found, f.more);
    case Reason::tag:
      return fmt::format("{}: argument 'tag' is {}; it must be 0 or more{}", call, f.index,
                         f.call == Call::irecv ? ", or kAnyTag" : "");
    case Reason::too_large:
      if (f.call == Call::put_packet || f.call == Call::wait_packet)
        return fmt::format("{}: packet {} {} rank {}: {} bytes; raise 'packet' of the options, which takes {}", call,
                           f.index, f.call == Call::put_packet ? "to" : "of", f.peer, f.found, f.expected);
      if (f.call == Call::all_to_all || f.call == Call::allreduce) {
        const auto words = static_cast<std::int64_t>(f.found);
        if (words < 0)
          return fmt::format("{}: argument '{}' is {}; it must be 0 or more", call,
                             f.call == Call::all_to_all ? "words" : "count", words);
        return fmt::format(
            "{} by exchange {}: {} words for each rank; raise 'exchange_words' of the options, which is {}", call,
            f.index, words, f.expected);
      }
      return fmt::format(
          "isend to rank {} with {}: {} bytes from outside the window; send from the window, or raise "
          "MessagesOptions::largest, which is {}",
          f.peer, tag_text(f.index), f.found, f.expected);
    case Reason::too_many_open:
      return fmt::format(
          "irecv from rank {} with {}: {} receives from that rank are open, counted from the oldest; wait for it, or "
          "raise MessagesOptions::receives",
          f.peer, tag_text(f.index), f.expected);
    case Reason::twice:
      return fmt::format("irecv from rank {} with {}: the layout of the receive names a byte twice", f.peer,
                         tag_text(f.index));
    case Reason::overrun:
      return fmt::format(
          "wait_packet: packet {} of rank {} has number {} before number {} was taken; the sender must not put the "
          "next "
          "before this rank has said that it has taken the last",
          f.index, f.peer, f.found, f.expected);
    case Reason::truncated:
      return fmt::format("wait for a message from rank {}: the message with {} has {} bytes, its receive takes {}",
                         f.peer, tag_text(f.index), f.found, f.expected);
    case Reason::unreached:
      return fmt::format(
          "{}: kernels of this rank do not reach the memory of {}; only messages go there, through the host", call,
          f.call == Call::barrier || f.call == Call::grid_barrier ? "all ranks" : fmt::format("rank {}", f.peer));
    case Reason::host_room:
      return fmt::format(
          "{} {} {} with {}: {} bytes; through the host {} may go, for MessagesOptions::staging is too small for "
          "slices: make it 64 or more, or send less at once",
          call, f.call == Call::irecv ? "from" : "to", peer_text(f.peer), tag_text(f.index), f.found, f.expected);
    case Reason::host_tag:
      return fmt::format("{} {} {} with {}: through the host tags go up to {}, which is what MPI takes", call,
                         f.call == Call::irecv ? "from" : "to", peer_text(f.peer), tag_text(f.index), f.expected);
    case Reason::no_host:
      return "echo: no messages of this rank go through the host, so that its thread is not asked";
  }
  return call;
}

constexpr const char* kTogether =
    "compile it again, with the headers of the libtasuki that it runs with (docs/kernels.md)";

}  // namespace

void refuse_other_version(const std::string& who, std::uint32_t version) {
  if (version == device::kKernelVersion) return;
  throw Error(
      fmt::format("{}: device: this program was compiled with version {} of tasuki/kernel.cuh, libtasuki has version "
                  "{}; {}",
                  who, version, device::kKernelVersion, kTogether));
}

std::string describe_other_version(const std::string& who, std::uint32_t set) {
  return fmt::format(
      "{}: a kernel that uses it was compiled with version {} of tasuki/kernel.cuh, libtasuki has version {}; {}", who,
      set & ~device::kOtherVersion, device::kKernelVersion, kTogether);
}

namespace detail {

void check_version(const Context& context, std::uint32_t found, std::uint32_t kernels) {
  if (found == kernels) return;
  throw Error(
      fmt::format("rank {}: launch_resident: an argument is of version {} of tasuki/kernel.cuh, but the kernel was "
                  "compiled with version {}; {}",
                  context.rank(), found, kernels, kTogether));
}

}  // namespace detail

std::string describe(const Failure& failure, const device::Team& team, const std::string& of) {
  return fmt::format("rank {}: {}: in block {} of a kernel, {}", team.rank, of, failure.block, what(failure, team));
}

}  // namespace tasuki
