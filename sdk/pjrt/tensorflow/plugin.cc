// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library that TensorFlow loads from site-packages/tensorflow-plugins: one device type whose programs run through
/// libcollet_pjrt.

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <string>

#include "sdk/pjrt/tensorflow/host.h"
#include "sdk/pjrt/tensorflow/kernels.h"
#include "sdk/pjrt/tensorflow/package.h"
#include "sdk/pjrt/tensorflow/tensorflow_c.h"

namespace collet::tensorflow {
namespace {

/// Lets functions with jit_compile=True run through PJRT. TensorFlow reads the variable when it compiles the first time.
void use_device_api() {
  constexpr const char* kName = "TF_XLA_FLAGS";
  const char* const before = std::getenv(kName);
  std::string flags = before ? before : "";
  if (flags.find("tf_xla_use_device_api") != std::string::npos) return;
  if (!flags.empty()) flags += ' ';
  setenv(kName, (flags + "--tf_xla_use_device_api=true").c_str(), 1);
}

/// Sets a status to an error of PJRT, and destroys the error.
void report(PJRT_Error* error, TF_Status* status) {
  set_status(status, TF_INTERNAL, "collet: " + message_of(error));
  PJRT_Error_Destroy_Args destroy{};
  destroy.struct_size = sizeof destroy;
  destroy.error = error;
  Package::get().api()->PJRT_Error_Destroy(&destroy);
}

/// Returns the client; makes it by the first call. Returns null, and sets the status, if that fails.
PJRT_Client* client_or_error(TF_Status* status) {
  static std::once_flag once;
  static std::string error;
  std::call_once(once, [] {
    error = make_client(Package::get().device_type());
    if (!error.empty() && !creation_error().empty()) error += ": " + creation_error();
  });
  if (error.empty() && created_client()) return created_client();
  set_status(status, TF_FAILED_PRECONDITION, "collet: " + error);
  return nullptr;
}

int32_t device_count(TF_Status* status) {
  PJRT_Client* const client = client_or_error(status);
  if (!client) return 0;
  PJRT_Client_AddressableDevices_Args args{};
  args.struct_size = sizeof(PJRT_Client_AddressableDevices_Args);
  args.client = client;
  if (PJRT_Error* const error = Package::get().api()->PJRT_Client_AddressableDevices(&args)) {
    report(error, status);
    return 0;
  }
  set_status(status, TF_OK, "");
  return static_cast<int32_t>(args.num_addressable_devices);
}

void init_device_states(TF_Status* status) {
  set_status(status, TF_OK, "");
}

/// Copies a list whose elements need no copy of their own.
template <typename List>
List copy_list(const List& from) {
  List out = from;
  constexpr int64_t kInlined = sizeof from.inlined / sizeof from.inlined[0];
  if (from.size > kInlined) {
    out.heap = new std::remove_pointer_t<decltype(out.heap)>[static_cast<size_t>(from.size)];
    std::copy_n(from.heap, from.size, out.heap);
  }
  return out;
}

XLA_Shape copy_shape(const XLA_Shape& from) {
  XLA_Shape out = from;
  out.dimensions = copy_list(from.dimensions);
  out.dynamic_dimensions = copy_list(from.dynamic_dimensions);
  if (from.ntuple_shapes > 0) {
    out.tuple_shapes = new XLA_Shape[static_cast<size_t>(from.ntuple_shapes)];
    for (int i = 0; i < from.ntuple_shapes; ++i) out.tuple_shapes[i] = copy_shape(from.tuple_shapes[i]);
  }
  if (!from.has_layout) return out;
  out.layout.minor_to_major = copy_list(from.layout.minor_to_major);
  out.layout.tiles = copy_list(from.layout.tiles);
  constexpr int64_t kInlined = sizeof(TileList::inlined) / sizeof(Int64List);
  Int64List* const tiles = out.layout.tiles.size > kInlined ? out.layout.tiles.heap : out.layout.tiles.inlined;
  for (int64_t i = 0; i < out.layout.tiles.size; ++i) tiles[i] = copy_list(tiles[i]);
  return out;
}

/// On the device, arrays have the shape that they have on the host.
void device_shape(XLA_Shape* host, int, bool, int, XLA_Shape* device, TF_Status* status) {
  *device = copy_shape(*host);
  set_status(status, TF_OK, "");
}

PJRT_Buffer* same_device_buffer_copy(PJRT_Buffer* from, PJRT_Client*, TF_Status* status) {
  const PJRT_Api* const api = Package::get().api();
  PJRT_Buffer_Device_Args device{};
  device.struct_size = sizeof(PJRT_Buffer_Device_Args);
  device.buffer = from;
  PJRT_Error* error = api->PJRT_Buffer_Device(&device);
  PJRT_Buffer_CopyToDevice_Args copy{};
  copy.struct_size = sizeof(PJRT_Buffer_CopyToDevice_Args);
  copy.buffer = from;
  copy.dst_device = device.device;
  if (!error) error = api->PJRT_Buffer_CopyToDevice(&copy);
  if (error) {
    report(error, status);
    return nullptr;
  }
  set_status(status, TF_OK, "");
  return copy.dst_buffer;
}

/// Returns whether TensorFlow is to compile each operation outside of compiled functions for the device, by kernels of its own.
/// TensorFlow's compiler tests need these kernels. They corrupt tensors of int32 in eager execution in TensorFlow 2.21, so this is
/// off unless COLLET_TENSORFLOW_ON_DEMAND=1.
bool compiles_each_operation() {
  const char* const value = std::getenv("COLLET_TENSORFLOW_ON_DEMAND");
  return value && std::string(value) == "1";
}

constexpr int32_t kPriority = 300;  // above the CPU and GPU of TensorFlow

}  // namespace
}  // namespace collet::tensorflow

#define COLLET_EXPORT extern "C" __attribute__((visibility("default")))

/// Called first by TensorFlow.
COLLET_EXPORT const TFNPD_Api* TFNPD_InitPlugin(TFNPD_PluginParams* params, TF_Status* status);
COLLET_EXPORT const TFNPD_Api* TFNPD_InitPlugin(TFNPD_PluginParams* params, TF_Status* status) {
  using namespace collet::tensorflow;
  static const TFNPD_Api api = [] {
    TFNPD_Api out{};
    out.struct_size = sizeof out;
    out.same_device_buffer_copy = same_device_buffer_copy;
    out.device_shape = device_shape;
    out.device_count = device_count;
    out.init_device_states = init_device_states;
    return out;
  }();
  const Package& package = Package::get();
  if (!package.error().empty()) {
    set_status(status, TF_FAILED_PRECONDITION, "collet: " + package.error());
    return &api;
  }
  use_device_api();
  params->device_type = package.device_type().c_str();
  params->compilation_device_name = "XLA_CPU_JIT";
  params->priority = kPriority;
  params->is_pluggable_device = false;
  params->use_pjrt_on_demand_compile = compiles_each_operation();
  set_status(status, TF_OK, "");
  return &api;
}

COLLET_EXPORT const PJRT_Api* GetPjrtApi();
COLLET_EXPORT const PJRT_Api* GetPjrtApi() {
  return collet::tensorflow::Package::get().api();
}

/// Called last by TensorFlow.
COLLET_EXPORT void TF_InitKernel();
COLLET_EXPORT void TF_InitKernel() {
  const collet::tensorflow::Package& package = collet::tensorflow::Package::get();
  if (!package.error().empty() || collet::tensorflow::compiles_each_operation()) return;
  if (collet::tensorflow::register_kernels(package.device_type())) return;
  std::fprintf(stderr,
               "collet: TensorFlow %s lacks functions that updates of variables and lists of tensors outside of "
               "compiled functions "
               "need\n",
               collet::tensorflow::version().c_str());
}
