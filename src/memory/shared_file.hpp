// SharedFile: a rank's shared memory as a file that has no name and ends with the last process that has it open.
//
//   head      a token by which the file is recognised
//   ledger    a word a block: its generation, and how many ranks have it mapped
//   regions   what blocks lie in
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

  /// A new one. Throws `Error`.
  static std::shared_ptr<SharedFile> make();
  /// The one that descriptor `fd` is of, which is taken over. Null, and why, if that is not the file with this token.
  static std::shared_ptr<SharedFile> adopt(int fd, std::uint64_t token, std::string& why);
  /// The one with this token if it was made by this process, else null.
  static std::shared_ptr<SharedFile> of_this_process(std::uint64_t token);

  SharedFile(int fd, std::uint64_t token) : fd_(fd), token_(token) {}
  ~SharedFile();
  SharedFile(const SharedFile&) = delete;
  SharedFile& operator=(const SharedFile&) = delete;

  int fd() const { return fd_; }
  std::uint64_t token() const { return token_; }

  /// Gets memory for a range of the file, so that no store into it can end a process. Empty, or why it cannot be had;
  /// then nothing is kept.
  std::string obtain(std::int64_t offset, std::int64_t bytes);
  /// Gives a range's memory back to the system; it reads as zeros when it is obtained again. False if that failed.
  bool give_back(std::int64_t offset, std::int64_t bytes);

  /// A region as this process sees it, mapped as long as the pointer lives; two callers share one mapping. Throws.
  std::shared_ptr<std::byte> map(std::int64_t offset, std::int64_t bytes);

  std::atomic_ref<std::uint64_t> entry(std::uint32_t index) const;

 private:
  std::string open_ledger();

  const int fd_;
  const std::uint64_t token_;
  std::byte* ledger_ = nullptr;
  std::mutex mutex_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::weak_ptr<std::byte>> mapped_;  // by offset and bytes
};

/// A number that nobody can guess. Throws `Error`.
std::uint64_t random_number();

}  // namespace tasuki
