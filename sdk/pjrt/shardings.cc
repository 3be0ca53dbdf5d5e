// SPDX-License-Identifier: Apache-2.0
#include "sdk/pjrt/shardings.h"

#include <charconv>
#include <cstdint>
#include <vector>

#include "sdk/pjrt/call.h"
#include "sdk/pjrt/executable.h"
#include "sdk/pjrt/wire.h"

namespace collet::pjrt {
namespace {

// The fields and kinds of OpSharding, by number.
enum { kType = 1, kTileDimensions = 3, kTileDevices = 4, kReplicateOnLast = 6, kLastDimensions = 8 };
enum { kReplicated = 0, kOther = 3, kUnreduced = 6 };  // REPLICATED is 0, the default, and so is not written

bool read_list(std::string_view& text, std::vector<uint64_t>& out) {
  while (!text.empty() && text.front() >= '0' && text.front() <= '9') {
    uint64_t value = 0;
    const auto [end, bad] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (bad != std::errc()) return false;
    text.remove_prefix(static_cast<size_t>(end - text.data()));
    if (text.starts_with(',')) text.remove_prefix(1);
    out.push_back(value);
  }
  return true;
}

std::string packed(const std::vector<uint64_t>& values) {
  std::string out;
  for (const uint64_t v : values) put_varint(out, v);
  return out;
}

template <typename Args>
PJRT_Error* give(Args* caller, size_t Args::* count, const std::vector<const char*> Compiled::* texts,
                 const std::vector<size_t> Compiled::* sizes) {
  return guarded(caller, "a shardings argument", sizeof(Args), sizeof(Args), [&](Args& args) -> PJRT_Error* {
    const Compiled& c = *args.executable->program;
    args.*count = (c.*texts).size();
    args.shardings = (c.*texts).empty() ? nullptr : (c.*texts).data();
    args.sharding_sizes = (c.*sizes).data();
    return nullptr;
  });
}

PJRT_Error* of_parameters(PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* caller) {
  using Args = PJRT_Shardings_PJRT_Executable_ParameterShardings_Args;
  return give(caller, &Args::num_parameters, &Compiled::parameter_shardings, &Compiled::parameter_sharding_sizes);
}

PJRT_Error* of_outputs(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* caller) {
  using Args = PJRT_Shardings_PJRT_Executable_OutputShardings_Args;
  return give(caller, &Args::num_outputs, &Compiled::output_shardings, &Compiled::output_sharding_sizes);
}

}  // namespace

std::string write_op_sharding(std::string_view text) {
  constexpr std::string_view kBegin = "{devices=[", kReplicate = " last_tile_dim_replicate";
  std::string out;
  if (text == "{unreduced}") put_number(out, kType, kUnreduced);
  if (!text.starts_with(kBegin) || !text.ends_with('}')) return out;
  text.remove_prefix(kBegin.size());
  text.remove_suffix(1);
  std::vector<uint64_t> dims, devices;
  if (!read_list(text, dims) || !text.starts_with(']')) return out;
  text.remove_prefix(1);
  if (!read_list(text, devices)) return out;
  put_number(out, kType, kOther);
  put_bytes(out, kTileDimensions, packed(dims));
  put_bytes(out, kTileDevices, packed(devices));
  if (text == kReplicate)
    put_number(out, kReplicateOnLast, 1);
  else if (text == " last_tile_dims={unreduced}")
    put_bytes(out, kLastDimensions, packed({kUnreduced}));
  else if (text == " last_tile_dims={unreduced, replicated}")
    put_bytes(out, kLastDimensions, packed({kUnreduced, kReplicated}));
  else if (!text.empty())
    out.clear();
  return out;
}

PJRT_Extension_Base* shardings_extension(PJRT_Extension_Base* next) {
  static PJRT_Shardings_Extension extension = {
      {sizeof(PJRT_Shardings_Extension), PJRT_Extension_Type_Shardings, nullptr}, of_parameters, of_outputs};
  extension.base.next = next;
  return &extension.base;
}

}  // namespace collet::pjrt
