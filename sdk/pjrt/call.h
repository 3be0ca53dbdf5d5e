// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <exception>
#include <new>
#include <string>

#include "sdk/pjrt/api/table.h"
#include "sdk/pjrt/error.h"

/// \file
/// Converts a caller's arguments for the implementation. Callers were compiled with an older or newer declaration of
/// the same structs, so each call works on a complete copy: fields that the caller's struct lacks are zero, and nothing
/// is written after the end of the caller's struct.

namespace collet::pjrt {

/// Implements each function of the table; the type of the arguments selects it. Null for success.
#define PJRT_FUNCTION(name, last, least, size) PJRT_Error* call(PJRT_##name##_Args& args);
#include "sdk/pjrt/api/functions.def"

/// The size of an argument struct without padding at its end, and the number of bytes that every supported caller has.
template <typename Args>
struct Extent;
#define PJRT_FUNCTION(name, last, least, size)                                                                \
  template <>                                                                                                 \
  struct Extent<PJRT_##name##_Args> {                                                                         \
    static constexpr const char* kName = "PJRT_" #name "_Args";                                               \
    static constexpr size_t kFull = offsetof(PJRT_##name##_Args, last) + sizeof(PJRT_##name##_Args::last);    \
    static constexpr size_t kLeast = offsetof(PJRT_##name##_Args, least) + sizeof(PJRT_##name##_Args::least); \
    static_assert(kFull == size && kLeast <= kFull);                                                          \
  };
#include "sdk/pjrt/api/functions.def"

/// Returns a copy of a caller's struct, with zeros after the caller's end.
template <typename T>
T copy_of(const T& caller) {
  T out;
  std::memset(static_cast<void*>(&out), 0, sizeof out);
  std::memcpy(static_cast<void*>(&out), &caller, caller.struct_size < sizeof out ? caller.struct_size : sizeof out);
  return out;
}

/// Gives the caller a list or a text that stays with the object that has it. Null: it succeeds always.
template <typename List, typename Element>
PJRT_Error* lend(List& from, Element*& data, size_t& size) {
  data = from.data();
  size = from.size();
  return nullptr;
}

/// Returns the error for a struct that is too short.
PJRT_Error* too_short(const char* name, size_t size, size_t least);

/// Runs `body` on a complete copy of the caller's arguments. Exceptions are converted to errors.
template <typename Args, typename Body>
PJRT_Error* guarded(Args* caller, const char* name, size_t least, size_t full, const Body& body) {
  try {
    if (!caller) return invalid_argument(std::string(name) + " is null");
    const size_t size = caller->struct_size;
    if (size < least) return too_short(name, size, least);
    Args args;
    const size_t shared = size < full ? size : full;
    std::memcpy(static_cast<void*>(&args), caller, shared);
    std::memset(reinterpret_cast<char*>(&args) + shared, 0, sizeof args - shared);
    PJRT_Error* error = body(args);
    std::memcpy(static_cast<void*>(caller), &args, shared);
    return error;
  } catch (const std::bad_alloc&) {
    return make_error(PJRT_Error_Code_RESOURCE_EXHAUSTED, "out of host memory");
  } catch (const std::exception& e) {
    return make_error(PJRT_Error_Code_INTERNAL, std::string("unexpected: ") + e.what());
  }
}

/// The entry of the table for a function.
template <typename Args>
PJRT_Error* entry(Args* caller) {
  using E = Extent<Args>;
  return guarded(caller, E::kName, E::kLeast, E::kFull, [](Args& args) { return call(args); });
}

}  // namespace collet::pjrt
