/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_RECORDS_HPP
#define COLLET_KERNEL_RECORDS_HPP

/** \file
 * Records of what a device did and when, for the optional table "profile" of tables.h. Needs no other header of the kernel
 * backend.
 */

#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <string>

#include "error.h"
#include "tables.h"

namespace collet {
namespace kernel {

/** Something that a device did, with its time, for the optional table "profile". */
struct Record {
  std::string name;      /**< name of the work, for readers */
  std::string engine;    /**< the part of the device on which it ran, such as "compute 0" or "dma" */
  uint64_t start_ns = 0; /**< start in nanoseconds since 1970, by the system's clock */
  uint64_t duration_ns = 0;
  uint64_t run_id = 0; /**< Op::run_id, or 0 */
  uint64_t bytes = 0;  /**< bytes moved, or 0 */
};

/** Receives the records of a device. The helper makes one for each device. */
class Recorder {
 public:
  virtual ~Recorder() = default;
  /** True if records are wanted at this time. */
  virtual bool is_on() const = 0;
  /** Stores a record. May be called from any thread. */
  virtual void add(const Record& record) = 0;
};

namespace detail {

/** Returns the nanoseconds since 1970 by the system's clock. */
inline uint64_t clock_ns() {
  return static_cast<uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count());
}

/** Stores the records of a device until they are read. */
class Records final : public Recorder {
 public:
  bool is_on() const override { return on_.load(std::memory_order_relaxed); }
  void add(const Record& record) override {
    collet_profile_record one{};
    one.start_ns = record.start_ns;
    one.duration_ns = record.duration_ns;
    one.run_id = record.run_id;
    one.bytes = record.bytes;
    collet_copy_text(one.name, sizeof one.name, record.name.c_str());
    collet_copy_text(one.engine, sizeof one.engine, record.engine.c_str());
    const std::lock_guard<std::mutex> lock(mutex_);
    records_.emplace_hint(records_.end(), one.start_ns, one);
  }
  void enable(bool on) { on_ = on; }
  uint32_t read(collet_profile_record* out, uint32_t capacity) {
    const std::lock_guard<std::mutex> lock(mutex_);
    uint32_t count = 0;
    for (; count < capacity && !records_.empty(); ++count) {
      out[count] = records_.begin()->second;
      records_.erase(records_.begin());
    }
    return count;
  }

 private:
  std::atomic<bool> on_{false};
  std::mutex mutex_;
  // By their start, as work ends on several engines in any order.
  std::multimap<uint64_t, collet_profile_record> records_;
};

}  // namespace detail
}  // namespace kernel
}  // namespace collet

#endif
