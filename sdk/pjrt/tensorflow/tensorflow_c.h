// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file
/// What TensorFlow's interface for pluggable devices with PJRT consists of, as far as this plugin uses it. The source is
/// TensorFlow 2.21: core/common_runtime/next_pluggable_device/c/plugin_c_api.h, xla/stream_executor/tpu/c_api_decl.h,
/// c/kernels.h. TensorFlow is not needed to build: its functions are looked up when the plugin is loaded.

#include <cstddef>
#include <cstdint>

extern "C" {

struct TF_Status;
struct PJRT_Buffer;
struct PJRT_Client;

/// Codes of TF_SetStatus.
enum TF_Code { TF_OK = 0, TF_FAILED_PRECONDITION = 9, TF_UNIMPLEMENTED = 12, TF_INTERNAL = 13 };

/// A list of numbers. Up to six are in the list itself; more are in an array that `new[]` has made.
struct Int64List {
  union {
    int64_t* heap;
    int64_t inlined[6];
  };
  int64_t size;
};

struct BoolList {
  union {
    bool* heap;
    bool inlined[6];
  };
  int64_t size;
};

struct TileList {
  union {
    Int64List* heap;
    Int64List inlined[6];
  };
  int64_t size;
};

struct XLA_Layout {
  Int64List minor_to_major;
  TileList tiles;
  int index_primitive_type;
  int pointer_primitive_type;
  int64_t element_size_in_bits;
  int64_t memory_space;
  int64_t dynamic_shape_metadata_prefix_bytes;
  int64_t tail_padding_alignment_in_elements;
};

struct XLA_Shape {
  int element_type;
  Int64List dimensions;
  BoolList dynamic_dimensions;
  XLA_Shape* tuple_shapes;  ///< made by `new[]`
  int ntuple_shapes;
  bool has_layout;
  XLA_Layout layout;
};

/// The functions of a device. All others may be null, if `use_pjrt_on_demand_compile` is false.
struct TFNPD_Api {
  size_t struct_size;
  void* priv;
  void* events[5];
  void* allocators[6];
  void* contexts[2];
  void* transfers[3];
  PJRT_Buffer* (*same_device_buffer_copy)(PJRT_Buffer* from, PJRT_Client* client, TF_Status* status);
  void (*device_shape)(XLA_Shape* host, int data_type, bool use_fast_memory, int layout_preference, XLA_Shape* device,
                       TF_Status* status);
  int32_t (*device_count)(TF_Status* status);
  void (*init_device_states)(TF_Status* status);
};

struct TFNPD_PluginParams {
  size_t struct_size;
  void* ext;
  const char* device_type;
  const char* compilation_device_name;
  int32_t priority;
  bool is_pluggable_device;
  bool use_pjrt_on_demand_compile;
};

}  // extern "C"

static_assert(sizeof(TFNPD_Api) == (2 + 20) * sizeof(void*));
static_assert(sizeof(XLA_Shape) == 536);
