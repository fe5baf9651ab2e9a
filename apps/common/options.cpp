// The command line that the apps share.
#include "common/options.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>
#include <limits>
#include <stdexcept>

#include "tasuki/device.hpp"
#include "tasuki/error.hpp"

namespace apps {
namespace {

std::vector<std::int64_t> numbers_between_x(const std::string& text) {
  std::vector<std::int64_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    std::int64_t number = 0;
    const auto [rest, error] = std::from_chars(at, end, number);
    if (error != std::errc() || number < 0) throw std::invalid_argument("'" + text + "' is not like 64x64x128");
    numbers.push_back(number);
    if (rest == end) return numbers;
    if (*rest != 'x') throw std::invalid_argument("'" + text + "' is not like 64x64x128");
    at = rest + 1;
  }
}

std::vector<int> parse_split(const std::string& text, int ndims) {
  const auto numbers = numbers_between_x(text);
  if (static_cast<int>(numbers.size()) != ndims) {
    throw std::invalid_argument(fmt::format("'{}' has {} numbers instead of {}", text, numbers.size(), ndims));
  }
  std::vector<int> split;
  for (const auto number : numbers) {
    if (number > std::numeric_limits<int>::max()) throw std::invalid_argument("'" + text + "' is too large");
    split.push_back(static_cast<int>(number));
  }
  return split;
}

// The ranks of `0,2,1,3`; empty: the text is something else, such as a name.
std::vector<int> ranks_between_commas(const std::string& text) {
  std::vector<int> ranks;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (;;) {
    int rank = 0;
    const auto [rest, error] = std::from_chars(at, end, rank);
    if (error != std::errc()) return {};
    ranks.push_back(rank);
    if (rest == end) return ranks;
    if (*rest != ',') return {};
    at = rest + 1;
  }
}

// What --size takes, in words.
std::string sizes(const AppInfo& info) {
  std::string names;
  for (const auto& [name, extents] : info.named_sizes) names += name + " = " + join(extents) + ", ";
  if (!names.empty()) names += "or ";
  return names + "extents, boundary cells included, such as " + (info.ndims == 2 ? "40x50" : "40x50x60");
}

// Lets CLI11 say which option a complaint is about.
template <class F>
CLI::Validator check(F&& parse) {
  return CLI::Validator(
      [parse](const std::string& text) -> std::string {
        try {
          parse(text);
          return {};
        } catch (const std::invalid_argument& error) {
          return error.what();
        }
      },
      "");
}

}  // namespace

std::vector<std::int64_t> parse_extents(const std::string& text, int ndims) {
  auto extents = numbers_between_x(text);
  if (extents.size() == 1) extents.assign(ndims, extents.front());
  if (static_cast<int>(extents.size()) != ndims) {
    throw std::invalid_argument(fmt::format("'{}' has {} numbers instead of {}", text, extents.size(), ndims));
  }
  double cells = 1;
  for (const auto extent : extents) {
    if (extent < 3) throw std::invalid_argument("'" + text + "': every extent must be at least 3");
    cells *= static_cast<double>(extent);
  }
  if (cells > 1e15) throw std::invalid_argument("'" + text + "' is too large");
  return extents;
}

tasuki::GridOptions Options::grid() const {
  tasuki::GridOptions options;
  options.split = split;
  options.reorder = reorder;
  options.given = ranks_between_commas(mapping);
  options.mapping = options.given.empty() ? mapping : "given";
  return options;
}

std::string join(const std::vector<std::int64_t>& extents) {
  return fmt::format("{}", fmt::join(extents, "x"));
}

std::string split_of(const tasuki::Grid& grid) {
  std::vector<std::int64_t> split;
  for (int d = 0; d < grid.ndims(); ++d) split.push_back(grid.split(d));
  return join(split);
}

CommandLine parse_options(int argc, char** argv, const AppInfo& info) {
  const auto extents_of = [&info](const std::string& text) {
    const auto named = info.named_sizes.find(text);
    if (named != info.named_sizes.end()) return named->second;
    if (text.find_first_not_of("0123456789x") != std::string::npos) {
      throw std::invalid_argument(fmt::format("there is no size '{}'; give {}", text, sizes(info)));
    }
    return parse_extents(text, info.ndims);
  };
  Options options;
  options.size = info.default_size;
  std::string split;
  std::string overlap = "on";
  CLI::App app(info.description, info.name);
  app.add_option("--size", options.size, sizes(info))->check(check(extents_of))->capture_default_str();
  app.add_option("--split", split, "ranks in each dimension, such as 2x2x1; 0: chosen (default: all chosen)")
      ->check(check([&info](const std::string& text) { parse_split(text, info.ndims); }));
  app.add_option("--iterations", options.iterations, "default: 3 with --verify, else about 3 seconds")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--norm-every", options.norm_every,
                 "reduce the norm over all ranks every so many iterations, on CPUs (default: once, at the end)")
      ->check(CLI::Range(1, std::numeric_limits<int>::max()));
  app.add_option("--overlap", overlap, "compute the interior while the halo travels")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  app.add_option("--path", options.path, "path of the halo's messages: auto, shared, mpi, peer, ...")
      ->capture_default_str();
  app.add_option(
         "--engine", options.engine,
         "who drives the halo: auto, inline, thread; on GPUs auto (graph or kernel, which is faster), stream, graph "
         "(iterations as CUDA graphs); kernel: one kernel for all iterations exchanges by itself")
      ->capture_default_str();
  app.add_option("--device", options.device, "where to compute; auto: on GPUs if every rank sees one")
      ->check(CLI::IsMember({"auto", "cpu", "gpu"}))
      ->capture_default_str();
  app.add_option("--threads", options.threads, "ranks are this many threads of one process, not processes")
      ->check(CLI::Range(1, 1024));
  app.add_flag("--reorder", options.reorder, "let Tasuki place the boxes on the ranks");
  app.add_option("--mapping", options.mapping,
                 "which rank has which box: row, column, blocks (of islands), hops, or the rank of each box: 0,2,1,3 "
                 "(default: row)");
  auto* verify = app.add_flag("--verify", options.verify, "compare every bit of the result with a serial run");
  app.add_flag("!--no-communication", options.communicate,
               "leave the halo's exchange out: the time that communication cannot beat, and a wrong result")
      ->excludes(verify);
  app.add_flag("--explain", options.explain, "print what the halo's plan does and why");
  app.add_flag("--progress", options.progress, "tell on stderr how far a run is, such as: 30 of 100");
  app.add_option("--json", options.json, "write the results to this file");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& end) {
    const bool failed = end.get_exit_code() != static_cast<int>(CLI::ExitCodes::Success);
    return {options, failed ? 2 : 0, failed ? fmt::format("{}: {}\n", info.name, end.what()) : app.help()};
  }
  options.extents = extents_of(options.size);
  if (!split.empty()) options.split = parse_split(split, info.ndims);
  options.overlap = overlap == "on";
  return {options, std::nullopt, {}};
}

bool settle_device(const tasuki::Context& context, Options& options) {
  const bool cpu_engine = options.engine == "inline" || options.engine == "thread";
  if (options.device == "cpu" || (options.device == "auto" && cpu_engine)) return false;
  std::string missing = tasuki::why_no_gpu();
#ifndef TASUKI_HAVE_CUDA
  if (missing.empty()) missing = "this program was built without its GPU sources; `make build` adds them";
#endif
  const std::vector<bool> have_one = context.allgather(missing.empty());
  const bool all = std::find(have_one.begin(), have_one.end(), false) == have_one.end();
  if (!all && options.device == "auto") return false;
  if (!missing.empty()) throw tasuki::Error("--device gpu: " + missing);
  if (!all) throw tasuki::Error("--device gpu: another rank has no GPU");
  if (options.engine != "auto" && options.engine != "stream" && options.engine != "graph" &&
      options.engine != "kernel") {
    throw tasuki::Error(fmt::format(
        "--engine {}: on GPUs it is auto, stream, graph or kernel; for this one add --device cpu", options.engine));
  }
  return true;
}

}  // namespace apps
