// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <collet/processes.h>

#include <string>

#include "hlo/base/status.h"

/// \file
/// Finds and loads transports. The tool uses it, too.

namespace collet::runtime {

/// A loaded transport. Like a backend's library it is never unloaded.
struct Transport {
  std::string path;
  const collet_transport* table = nullptr;
  collet_transport_collective_fn collective = nullptr;  ///< null if it has no collectives of its own
  collet_transport_launched_fn launched = nullptr;      ///< null if it knows no launcher
};

/// Returns `option`, or the value of an environment variable where that is null or empty, or `usual`.
std::string chosen(const char* option, const char* variable, const std::string& usual);
/// Returns the longest wait for another process: `option` unless it is 0, or COLLET_EXCHANGE_TIMEOUT, or 300 seconds.
Expected<uint32_t> exchange_timeout_ms(uint32_t option);
/// Returns the name or path of the transport: `option`, or COLLET_TRANSPORT, or "gloo".
std::string transport_name(const char* option);
/// Loads a transport by name or path. Names are those of libraries in collet/transports beside the library in which `place` is an
/// address, or in lib/collet/transports beside its folder.
Expected<Transport> load_transport(const std::string& name, const void* place);

}  // namespace collet::runtime
