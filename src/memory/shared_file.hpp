// SharedFile: one rank's shared memory, as a file without a name (memfd). The file ends with the last process that has
// it open.
//
//   head      a random token, which identifies the file
//   ledger    one word for each block: its generation, and the number of ranks that have mapped it
//   regions   the memory of the blocks
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace tasuki {

class SharedFile {
 public:
  static constexpr std::int64_t kHead = 64 << 10;
  static constexpr std::uint32_t kEntries = 1
                                            << 20;  ///< of the ledger; pages of it that were never used take no memory
  static constexpr std::int64_t kRegions = kHead + std::int64_t{kEntries} * 8;  ///< where regions begin

  /// Makes a new file. Throws `Error`.
  static std::shared_ptr<SharedFile> make();
  /// Takes over descriptor `fd`. Returns null, and sets `why`, if its file does not have this token.
  static std::shared_ptr<SharedFile> adopt(int fd, std::uint64_t token, std::string& why);
  /// The file with this token if this process made it, else null.
  static std::shared_ptr<SharedFile> of_this_process(std::uint64_t token);

  SharedFile(int fd, std::uint64_t token) : fd_(fd), token_(token) {}
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int fd() const { return fd_; }
  std::uint64_t token() const { return token_; }

  /// Allocates memory for a range of the file. Without it a store into the range kills the process if there is no
  /// memory left. Returns an empty text, or the reason why there is none; then nothing stays allocated.
  std::string obtain(std::int64_t offset, std::int64_t bytes);
  /// Returns the memory of a range to the system. After the next `obtain` the range reads as zeros. False if the system
  /// refused.
  bool give_back(std::int64_t offset, std::int64_t bytes);

  /// Maps a region into this process for as long as the pointer exists. Callers share one mapping. Throws `Error`.
  std::shared_ptr<std::byte> map(std::int64_t offset, std::int64_t bytes);

  /// A word of the ledger.
  std::atomic_ref<std::uint64_t> entry(std::uint32_t index) const;

 private:
  std::string open_ledger();

  const int fd_;
  const std::uint64_t token_;
  std::byte* ledger_ = nullptr;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::weak_ptr<std::byte>> mapped_;  // by offset and bytes
};

/// A random number from the system, which others cannot guess. Throws `Error`.
std::uint64_t random_number();

}  // namespace tasuki
