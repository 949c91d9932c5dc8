#pragma once
// The calls that programs reach through function pointers in the structures instead of exported symbols.

#include "doors/ibverbs/objects.hpp"

namespace fairlead::ibverbs {

/// Fills both function tables of an opened device.
void set_operations(verbs_context& context);
/// Fills the function tables of an extended completion queue or queue pair.
void set_operations(Queue& queue, std::uint64_t fields);
void set_operations(Pair& pair);

int poll_queue(ibv_cq* queue, int count, ibv_wc* out);
int request_notify(ibv_cq* queue, int solicited_only);
int post_send(ibv_qp* pair, ibv_send_wr* requests, ibv_send_wr** bad);
int post_receive(ibv_qp* pair, ibv_recv_wr* requests, ibv_recv_wr** bad);
int post_shared_receive(ibv_srq* queue, ibv_recv_wr* requests, ibv_recv_wr** bad);

ibv_mw* add_window(ibv_pd* pd, ibv_mw_type type);
int remove_window(ibv_mw* window);
/// Binds a window of type 1: posts the request and gives the window its next key.
int bind_window(ibv_qp* pair, ibv_mw* window, ibv_mw_bind* wanted);
/// Converts a program's binding request. Returns 0 or an errno.
int read_binding(ibv_mw* window, std::uint32_t key, const ibv_mw_bind_info& from, verbs::WindowBinding& to);

int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* out, std::size_t size);
int query_device_extended(ibv_context* context, const ibv_query_device_ex_input* input, ibv_device_attr_ex* out,
                          std::size_t size);
int query_values(ibv_context* context, ibv_values_ex* values);
ibv_cq_ex* create_queue(ibv_context* context, ibv_cq_init_attr_ex* attributes);
int modify_queue(ibv_cq* queue, ibv_modify_cq_attr* attributes);
ibv_srq* create_shared_receive(ibv_context* context, ibv_srq_init_attr_ex* attributes);
int shared_receive_number(ibv_srq* queue, std::uint32_t* number);
ibv_mr* add_region(ibv_pd* pd, void* address, std::size_t length, std::optional<std::uint64_t> iova, unsigned access,
                   const std::shared_ptr<std::byte>& device_bytes = {});
ibv_mr* add_null_region(ibv_pd* pd);
int advise_region(ibv_pd* pd, ibv_advise_mr_advice advice, std::uint32_t flags, ibv_sge* list, std::uint32_t count);
ibv_td* add_thread_domain(ibv_context* context, ibv_td_init_attr* attributes);
int remove_thread_domain(ibv_td* domain);
ibv_pd* add_parent_domain(ibv_context* context, ibv_parent_domain_init_attr* attributes);
ibv_dm* add_device_memory(ibv_context* context, ibv_alloc_dm_attr* attributes);
int remove_device_memory(ibv_dm* memory);
ibv_mr* add_device_region(ibv_pd* pd, ibv_dm* memory, std::uint64_t offset, std::size_t length, unsigned access);
ibv_qp* create_pair(ibv_context* context, ibv_qp_init_attr_ex* attributes);
ibv_xrcd* open_xrc_domain(ibv_context* context, ibv_xrcd_init_attr* attributes);
int close_xrc_domain(ibv_xrcd* domain);
/// Creates or opens queue pairs of type XRC_RECV.
ibv_qp* create_target(ibv_qp_init_attr_ex& attributes);
ibv_qp* open_target(ibv_context* context, ibv_qp_open_attr* attributes);

}  // namespace fairlead::ibverbs
