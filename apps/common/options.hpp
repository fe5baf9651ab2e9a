// The command line that the apps share.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tasuki/context.hpp"
#include "tasuki/grid.hpp"

namespace apps {

/// What differs between the apps' command lines.
struct AppInfo {
  std::string name;
  std::string description;
  int ndims = 0;
  std::string default_size;
  std::map<std::string, std::vector<std::int64_t>> named_sizes;
};

struct Options {
  std::string size;                   ///< as given
  std::vector<std::int64_t> extents;  ///< global cells a dimension
  std::vector<int> split;             ///< empty: Tasuki chooses
  std::string mapping;                ///< as `tasuki::GridOptions` names them, or ranks: 0,2,1,3; empty: row
  std::string path = "auto";
  std::string engine = "auto";
  std::string device = "auto";  ///< auto, cpu, gpu
  std::string json;             ///< file for the results; empty: none
  int iterations = 0;           ///< 0: chosen by the app
  int norm_every = 0;           ///< iterations between two reductions of the norm; 0: one at the end
  int threads = 0;              ///< ranks that are threads of this process; 0: they are processes
  bool overlap = true;
  bool verify = false;
  bool explain = false;
  bool reorder = false;
  bool progress = false;
  bool communicate = true;  ///< false: computes as if every halo were always there

  tasuki::GridOptions grid() const;
};

/// Thread blocks for an exchange on a GPU that computes meanwhile: the exchange then takes a little longer, which is
/// hidden, and slows the computation less, which is not.
inline constexpr int kBlocksBeside = 32;

/// What a command line says. Where there is nothing to run, the exit code for leaving and what rank 0 prints before.
struct CommandLine {
  Options options;
  std::optional<int> code;
  std::string said;
};
CommandLine parse_options(int argc, char** argv, const AppInfo& info);

/// True if the ranks compute on GPUs: as `options.device` says, `auto` meaning where all ranks have one.
/// Collective; throws `tasuki::Error` for what cannot be.
bool settle_device(const tasuki::Context& context, Options& options);

/// `512x512x1024`, or `512` for all of `ndims` dimensions. Throws `std::invalid_argument` for anything else.
std::vector<std::int64_t> parse_extents(const std::string& text, int ndims);

/// `512x512x1024`
std::string join(const std::vector<std::int64_t>& extents);

/// The split of a grid: `2x1x1`
std::string split_of(const tasuki::Grid& grid);

}  // namespace apps
