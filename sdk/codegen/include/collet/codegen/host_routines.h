// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/codegen/launch_plan.h>
#include <collet/codegen/status.h>

#include <memory>

/// \file
/// Routines for source text that runs in the memory of this process: sorts, FFT, random bits, factorizations.

namespace collet::codegen {

/// The routines that one program calls, see CodeForm::kSource. It must live as long as calls of the program run, which may run at
/// the same time.
class HostRoutines {
 public:
  /// Makes the routines of `plan`, which must outlive them. UNIMPLEMENTED if one needs LAPACK, and there is none.
  static Status create(const LaunchPlan& plan, std::unique_ptr<HostRoutines>& out);
  ~HostRoutines();
  HostRoutines(const HostRoutines&) = delete;
  HostRoutines& operator=(const HostRoutines&) = delete;

  /// Returns what the slot of the routines must hold.
  const void* table() const;

 private:
  HostRoutines();
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace collet::codegen
