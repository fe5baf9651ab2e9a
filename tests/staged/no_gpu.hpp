// A GPU that is none, for tests of what the host does with GPUs: it takes the place of the process's own.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>

#include "memory/gpu.hpp"

/// Host memory that no other rank can map, and streams that do everything at once.
class NoGpu final : public tasuki::Gpu {
 public:
  int count() const override { return 1; }
  int current() const override { return 0; }
  void select(int) override {}
  std::string name(int) const override { return "none"; }
  bool adds_to(int, const std::string&) const override { return false; }
  int processors(int) const override { return 1; }
  tasuki::Memory where(const void*) const override { return tasuki::Memory::host; }
  std::byte* allocate(std::int64_t bytes) override {
    return static_cast<std::byte*>(std::calloc(1, static_cast<std::size_t>(bytes)));
  }
  void release(std::byte* p) noexcept override { std::free(p); }
  std::byte* allocate_mapped(std::int64_t bytes) override { return allocate(bytes); }
  void release_mapped(std::byte* p) noexcept override { std::free(p); }
  void copy(void* dst, const void* src, std::int64_t bytes) override {
    std::memcpy(dst, src, static_cast<std::size_t>(bytes));
  }
  std::string share(const void*, tasuki::GpuHandle&, std::int64_t&) override { return "there is no GPU"; }
  std::byte* open(const tasuki::GpuHandle&) override { return nullptr; }
  void close(std::byte*) noexcept override {}
  void reach(const void*) override {}
  bool done(tasuki::Stream stream) override { return !busy || !busy(stream); }
  bool capturing(tasuki::Stream) override { return false; }
  int device_of(tasuki::Stream) override { return 0; }
  std::shared_ptr<tasuki::GpuFork> fork() override { return nullptr; }
  std::shared_ptr<tasuki::GpuGraph> capture(tasuki::Stream, const std::function<void()>&) override { return nullptr; }

  std::function<bool(tasuki::Stream)> busy;  ///< whether work is left in a stream, if a test says so
};

/// The process's, in messages.cpp.
NoGpu& no_gpu();
