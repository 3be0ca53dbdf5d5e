// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "sdk/pjrt/api/base.h"

/// \file
/// The extensions that this library offers: tables of functions in a linked list that begins at
/// PJRT_Api::extension_start.

struct PJRT_Layouts_MemoryLayout;
struct PJRT_Layouts_SerializedLayout;

struct PJRT_Layouts_MemoryLayout_Destroy_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
};

struct PJRT_Layouts_MemoryLayout_Serialize_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Layouts_MemoryLayout* layout;
  const char* serialized_bytes;                                              // out
  size_t serialized_bytes_size;                                              // out
  PJRT_Layouts_SerializedLayout* serialized_layout;                          // out
  void (*serialized_layout_deleter)(PJRT_Layouts_SerializedLayout* layout);  // out
};

struct PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;  // out
};

struct PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Buffer* buffer;
  PJRT_Layouts_MemoryLayout* layout;  // out
};

struct PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_TopologyDescription* topology_description;
  PJRT_Buffer_Type type;
  const int64_t* dims;
  size_t num_dims;
  PJRT_Layouts_MemoryLayout* layout;  // out
};

struct PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;                   // out
  PJRT_Layouts_MemoryLayout** layouts;  // out
};

struct PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;                // out
  PJRT_Layouts_MemoryLayout** layouts;  // out
};

struct PJRT_Shardings_PJRT_Executable_ParameterShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_parameters;         // out
  const char* const* shardings;  // out
  const size_t* sharding_sizes;  // out
};

struct PJRT_Shardings_PJRT_Executable_OutputShardings_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Executable* executable;
  size_t num_outputs;            // out
  const char* const* shardings;  // out
  const size_t* sharding_sizes;  // out
};

struct PJRT_Layouts_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*Layouts_MemoryLayout_Destroy)(PJRT_Layouts_MemoryLayout_Destroy_Args* args);
  PJRT_Error* (*Layouts_MemoryLayout_Serialize)(PJRT_Layouts_MemoryLayout_Serialize_Args* args);
  PJRT_Error* (*Layouts_PJRT_Client_GetDefaultLayout)(PJRT_Layouts_PJRT_Client_GetDefaultLayout_Args* args);
  PJRT_Error* (*Layouts_PJRT_Buffer_MemoryLayout)(PJRT_Layouts_PJRT_Buffer_MemoryLayout_Args* args);
  PJRT_Error* (*Layouts_PJRT_Topology_GetDefaultLayout)(PJRT_Layouts_PJRT_Topology_GetDefaultLayout_Args* args);
  PJRT_Error* (*Layouts_PJRT_Executable_GetOutputLayouts)(PJRT_Layouts_PJRT_Executable_GetOutputLayouts_Args* args);
  PJRT_Error* (*Layouts_PJRT_Executable_GetParameterLayouts)(
      PJRT_Layouts_PJRT_Executable_GetParameterLayouts_Args* args);
};

struct PJRT_Shardings_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*Shardings_PJRT_Executable_ParameterShardings)(
      PJRT_Shardings_PJRT_Executable_ParameterShardings_Args* args);
  PJRT_Error* (*Shardings_PJRT_Executable_OutputShardings)(PJRT_Shardings_PJRT_Executable_OutputShardings_Args* args);
};

struct PJRT_FFI_Type_Register_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const char* type_name;
  size_t type_name_size;
  int64_t type_id;        // in and out
  const void* type_info;  // since version 3 of the extension
};

struct PJRT_FFI_UserData_Add_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_ExecuteContext* context;
  int64_t type_id;
  void* data;
  void (*deleter)(void* data);  // until version 2 of the extension
};

/// Unlike others it has no extension_start.
struct PJRT_FFI_Register_Handler_Args {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

/// The same of callers of version 1 of the extension, which register handlers for untyped custom calls, too.
struct PJRT_FFI_Register_Handler_Args_V1 {
  size_t struct_size;
  const char* target_name;
  size_t target_name_size;
  int api_version;
  void* handler;
  const char* platform_name;
  size_t platform_name_size;
  uint32_t traits;
};

struct PJRT_FFI_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*type_register)(PJRT_FFI_Type_Register_Args* args);
  PJRT_Error* (*user_data_add)(PJRT_FFI_UserData_Add_Args* args);
  PJRT_Error* (*register_handler)(PJRT_FFI_Register_Handler_Args* args);
};

struct PJRT_MemoryDescription;

struct PJRT_DeviceDescription_MemoryDescriptions_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_DeviceDescription* device_description;
  const PJRT_MemoryDescription* const* memory_descriptions;  // out
  size_t num_memory_descriptions;                            // out
  size_t default_memory_index;                               // out; size_t(-1): there is none
};

struct PJRT_MemoryDescription_Kind_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  const PJRT_MemoryDescription* memory_description;
  const char* kind;  // out
  size_t kind_size;  // out
  int kind_id;       // out
};

struct PJRT_MemoryDescriptions_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*PJRT_DeviceDescription_MemoryDescriptions)(PJRT_DeviceDescription_MemoryDescriptions_Args* args);
  PJRT_Error* (*PJRT_MemoryDescription_Kind)(PJRT_MemoryDescription_Kind_Args* args);
};

struct PJRT_RuntimeAbiVersion;
struct PJRT_ExecutableAbiVersion;
struct PJRT_SerializedProto;

/// The argument structs of this extension have no extension_start.
struct PJRT_Client_RuntimeAbiVersion_Args {
  size_t struct_size;
  PJRT_Client* client;
  PJRT_RuntimeAbiVersion* abi_version;  // out
};

struct PJRT_Executable_GetAbiVersion_Args {
  size_t struct_size;
  PJRT_Executable* executable;
  PJRT_ExecutableAbiVersion* abi_version;  // out
};

struct PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;
  const PJRT_RuntimeAbiVersion* other_abi_version;
};

struct PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;
  const PJRT_ExecutableAbiVersion* executable_abi_version;
};

struct PJRT_RuntimeAbiVersion_Destroy_Args {
  size_t struct_size;
  PJRT_RuntimeAbiVersion* abi_version;
};

struct PJRT_RuntimeAbiVersion_ToProto_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;
  const char* serialized_proto;                                    // out
  size_t serialized_proto_size;                                    // out
  PJRT_SerializedProto* serialized_proto_holder;                   // out
  void (*serialized_proto_deleter)(PJRT_SerializedProto* holder);  // out
};

struct PJRT_RuntimeAbiVersion_PlatformId_Args {
  size_t struct_size;
  const PJRT_RuntimeAbiVersion* abi_version;
  uint64_t platform_id;  // out
};

struct PJRT_RuntimeAbiVersion_FromProto_Args {
  size_t struct_size;
  const char* serialized_proto;
  size_t serialized_proto_size;
  PJRT_RuntimeAbiVersion* abi_version;  // out
};

struct PJRT_ExecutableAbiVersion_Destroy_Args {
  size_t struct_size;
  PJRT_ExecutableAbiVersion* abi_version;
};

struct PJRT_ExecutableAbiVersion_ToProto_Args {
  size_t struct_size;
  const PJRT_ExecutableAbiVersion* abi_version;
  const char* serialized_proto;                                    // out
  size_t serialized_proto_size;                                    // out
  PJRT_SerializedProto* serialized_proto_holder;                   // out
  void (*serialized_proto_deleter)(PJRT_SerializedProto* holder);  // out
};

struct PJRT_ExecutableAbiVersion_PlatformId_Args {
  size_t struct_size;
  const PJRT_ExecutableAbiVersion* abi_version;
  uint64_t platform_id;  // out
};

struct PJRT_ExecutableAbiVersion_FromProto_Args {
  size_t struct_size;
  const char* serialized_proto;
  size_t serialized_proto_size;
  PJRT_ExecutableAbiVersion* abi_version;  // out
};

struct PJRT_AbiVersion_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*client_runtime_abi_version)(PJRT_Client_RuntimeAbiVersion_Args* args);
  PJRT_Error* (*executable_get_abi_version)(PJRT_Executable_GetAbiVersion_Args* args);
  PJRT_Error* (*runtime_abi_version_destroy)(PJRT_RuntimeAbiVersion_Destroy_Args* args);
  PJRT_Error* (*runtime_abi_version_is_compatible_with_runtime)(
      PJRT_RuntimeAbiVersion_IsCompatibleWithRuntime_Args* args);
  PJRT_Error* (*runtime_abi_version_is_compatible_with_executable)(
      PJRT_RuntimeAbiVersion_IsCompatibleWithExecutable_Args* args);
  PJRT_Error* (*runtime_abi_version_to_proto)(PJRT_RuntimeAbiVersion_ToProto_Args* args);
  PJRT_Error* (*runtime_abi_version_platform_id)(PJRT_RuntimeAbiVersion_PlatformId_Args* args);
  PJRT_Error* (*executable_abi_version_destroy)(PJRT_ExecutableAbiVersion_Destroy_Args* args);
  PJRT_Error* (*executable_abi_version_to_proto)(PJRT_ExecutableAbiVersion_ToProto_Args* args);
  PJRT_Error* (*executable_abi_version_platform_id)(PJRT_ExecutableAbiVersion_PlatformId_Args* args);
  PJRT_Error* (*runtime_abi_version_from_proto)(PJRT_RuntimeAbiVersion_FromProto_Args* args);
  PJRT_Error* (*executable_abi_version_from_proto)(PJRT_ExecutableAbiVersion_FromProto_Args* args);
};

struct PLUGIN_Profiler_Error;
struct PLUGIN_Profiler;

struct PLUGIN_Profiler_Error_Destroy_Args {
  size_t struct_size;
  void* priv;
  PLUGIN_Profiler_Error* error;
};

struct PLUGIN_Profiler_Error_Message_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  const char* message;  // out
  size_t message_size;  // out
};

struct PLUGIN_Profiler_Error_GetCode_Args {
  size_t struct_size;
  void* priv;
  const PLUGIN_Profiler_Error* error;
  int code;  // out
};

struct PLUGIN_Profiler_Create_Args {
  size_t struct_size;
  const char* options;
  size_t options_size;
  PLUGIN_Profiler* profiler;  // out
};

/// The arguments of the functions destroy, start and stop.
struct PLUGIN_Profiler_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
};

struct PLUGIN_Profiler_CollectData_Args {
  size_t struct_size;
  PLUGIN_Profiler* profiler;
  uint8_t* buffer;              // in and out
  size_t buffer_size_in_bytes;  // out
};

struct PLUGIN_Profiler_Api {
  size_t struct_size;
  void* priv;
  void (*error_destroy)(PLUGIN_Profiler_Error_Destroy_Args*);
  void (*error_message)(PLUGIN_Profiler_Error_Message_Args*);
  PLUGIN_Profiler_Error* (*error_get_code)(PLUGIN_Profiler_Error_GetCode_Args*);
  PLUGIN_Profiler_Error* (*create)(PLUGIN_Profiler_Create_Args*);
  PLUGIN_Profiler_Error* (*destroy)(PLUGIN_Profiler_Args*);
  PLUGIN_Profiler_Error* (*start)(PLUGIN_Profiler_Args*);
  PLUGIN_Profiler_Error* (*stop)(PLUGIN_Profiler_Args*);
  PLUGIN_Profiler_Error* (*collect_data)(PLUGIN_Profiler_CollectData_Args*);
};

struct PJRT_Profiler_Extension {
  PJRT_Extension_Base base;
  PLUGIN_Profiler_Api* profiler_api;
  int64_t traceme_context_id;  // set in arguments only
};

struct PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_buffers;
  PJRT_Buffer** buffers;
  const int32_t* dst_global_device_ids;
  const int64_t* transfer_keys;
  PJRT_Event** send_events;  // the array is the caller's; its elements are out
};

struct PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args {
  size_t struct_size;
  PJRT_Extension_Base* extension_start;
  PJRT_Client* client;
  size_t num_shapes;
  size_t* shape_num_dims;
  const int64_t** num_dims;  // the dimensions of each shape
  PJRT_Buffer_Type* element_types;
  PJRT_Buffer_MemoryLayout** layouts;
  PJRT_Device* device;
  const int32_t* src_global_device_ids;
  const int64_t* transfer_keys;
  PJRT_Buffer** buffers;  // the array is the caller's; its elements are out
};

/// The first two functions are an older interface, in which the frontend carries descriptions of the receiver to the sender.
struct PJRT_CrossHostTransfers_Extension {
  PJRT_Extension_Base base;
  PJRT_Error* (*PJRT_Transfers_PJRT_Client_MakeCrossHostReceiveBuffers)(void* args);
  void (*PJRT_Transfers_PJRT_Buffer_CopyToRemoteDevice)(void* args);
  PJRT_Error* (*PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers)(
      PJRT_Transfers_PJRT_Client_CrossHostReceiveBuffers_Args* args);
  PJRT_Error* (*PJRT_Transfers_PJRT_Client_CrossHostSendBuffers)(
      PJRT_Transfers_PJRT_Client_CrossHostSendBuffers_Args* args);
};
