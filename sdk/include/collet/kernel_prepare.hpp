/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COLLET_KERNEL_PREPARE_HPP
#define COLLET_KERNEL_PREPARE_HPP

/** \file
 * Calls Kernel::prepare for several ops of a program at the same time, for tables whose rows compile their kernels there.
 */

#include <algorithm>
#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <vector>

#include "kernel_describe.hpp"

namespace collet {
namespace kernel {

/** Returns a function for Backend::prepare that calls the rows' `prepare` by up to `threads` threads, the caller's among them; 0: as many as
 * the host has. The rows' functions must allow that. If one throws, no more are started, and the error of the first in the order of the
 * program is thrown when all have ended. */
inline std::function<void(Device& device, const std::vector<Preparation>& all)> prepare_by_threads(
    uint32_t threads = 0) {
  const size_t most = threads != 0 ? threads : std::max(1u, std::thread::hardware_concurrency());
  return [most](Device& device, const std::vector<Preparation>& all) {
    std::atomic<size_t> next{0};
    std::atomic<bool> failed{false};
    std::vector<std::exception_ptr> failures(all.size());
    const auto work = [&] {
      while (!failed) {
        const size_t i = next++;
        if (i >= all.size()) return;
        try {
          if (all[i].row->prepare) *all[i].state = all[i].row->prepare(device, all[i].op);
        } catch (...) {
          failures[i] = std::current_exception();
          failed = true;
        }
      }
    };
    std::vector<std::thread> others;
    try {
      while (others.size() + 1 < std::min(most, all.size())) others.emplace_back(work);
    } catch (const std::system_error&) {
      // The system has no more threads: the others do all of it.
    }
    work();
    for (std::thread& one : others) one.join();
    for (const std::exception_ptr& one : failures) {
      if (one) std::rethrow_exception(one);
    }
  };
}

}  // namespace kernel
}  // namespace collet

#endif
