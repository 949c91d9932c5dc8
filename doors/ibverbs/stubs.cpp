// Private symbols of libibverbs that only hardware drivers call. Other libraries (libmlx5, libefa, ...) link against
// them and would not load without them. Nothing in this door leads there, so they only refuse.
#include <cerrno>

#define FAIRLEAD_REFUSES(name) \
  extern "C" int name() {      \
    errno = EOPNOTSUPP;        \
    return EOPNOTSUPP;         \
  }

#define FAIRLEAD_REFUSES_POINTER(name) \
  extern "C" void* name() {            \
    errno = EOPNOTSUPP;                \
    return nullptr;                    \
  }

#define FAIRLEAD_IGNORES(name) \
  extern "C" void name() {}

FAIRLEAD_IGNORES(verbs_register_driver_34)  // called by constructors of hardware drivers
FAIRLEAD_IGNORES(__verbs_log)
FAIRLEAD_IGNORES(verbs_init_cq)
FAIRLEAD_IGNORES(verbs_set_ops)
FAIRLEAD_IGNORES(verbs_uninit_context)
FAIRLEAD_REFUSES_POINTER(_verbs_init_and_alloc_context)
FAIRLEAD_REFUSES_POINTER(verbs_open_device)
FAIRLEAD_REFUSES(__ioctl_final_num_attrs)
FAIRLEAD_REFUSES(execute_ioctl)

extern "C" {
extern bool verbs_allow_disassociate_destroy;
bool verbs_allow_disassociate_destroy = false;
}

FAIRLEAD_REFUSES(ibv_cmd_advise_mr)
FAIRLEAD_REFUSES(ibv_cmd_alloc_dm)
FAIRLEAD_REFUSES(ibv_cmd_alloc_mw)
FAIRLEAD_REFUSES(ibv_cmd_alloc_pd)
FAIRLEAD_REFUSES(ibv_cmd_attach_mcast)
FAIRLEAD_REFUSES(ibv_cmd_close_xrcd)
FAIRLEAD_REFUSES(ibv_cmd_create_ah)
FAIRLEAD_REFUSES(ibv_cmd_create_counters)
FAIRLEAD_REFUSES(ibv_cmd_create_cq)
FAIRLEAD_REFUSES(ibv_cmd_create_cq_ex)
FAIRLEAD_REFUSES(ibv_cmd_create_flow)
FAIRLEAD_REFUSES(ibv_cmd_create_flow_action_esp)
FAIRLEAD_REFUSES(ibv_cmd_create_qp)
FAIRLEAD_REFUSES(ibv_cmd_create_qp_ex)
FAIRLEAD_REFUSES(ibv_cmd_create_qp_ex2)
FAIRLEAD_REFUSES(ibv_cmd_create_rwq_ind_table)
FAIRLEAD_REFUSES(ibv_cmd_create_srq)
FAIRLEAD_REFUSES(ibv_cmd_create_srq_ex)
FAIRLEAD_REFUSES(ibv_cmd_create_wq)
FAIRLEAD_REFUSES(ibv_cmd_dealloc_mw)
FAIRLEAD_REFUSES(ibv_cmd_dealloc_pd)
FAIRLEAD_REFUSES(ibv_cmd_dereg_mr)
FAIRLEAD_REFUSES(ibv_cmd_destroy_ah)
FAIRLEAD_REFUSES(ibv_cmd_destroy_counters)
FAIRLEAD_REFUSES(ibv_cmd_destroy_cq)
FAIRLEAD_REFUSES(ibv_cmd_destroy_flow)
FAIRLEAD_REFUSES(ibv_cmd_destroy_flow_action)
FAIRLEAD_REFUSES(ibv_cmd_destroy_qp)
FAIRLEAD_REFUSES(ibv_cmd_destroy_rwq_ind_table)
FAIRLEAD_REFUSES(ibv_cmd_destroy_srq)
FAIRLEAD_REFUSES(ibv_cmd_destroy_wq)
FAIRLEAD_REFUSES(ibv_cmd_detach_mcast)
FAIRLEAD_REFUSES(ibv_cmd_free_dm)
FAIRLEAD_REFUSES(ibv_cmd_get_context)
FAIRLEAD_REFUSES(ibv_cmd_modify_cq)
FAIRLEAD_REFUSES(ibv_cmd_modify_flow_action_esp)
FAIRLEAD_REFUSES(ibv_cmd_modify_qp)
FAIRLEAD_REFUSES(ibv_cmd_modify_qp_ex)
FAIRLEAD_REFUSES(ibv_cmd_modify_srq)
FAIRLEAD_REFUSES(ibv_cmd_modify_wq)
FAIRLEAD_REFUSES(ibv_cmd_open_qp)
FAIRLEAD_REFUSES(ibv_cmd_open_xrcd)
FAIRLEAD_REFUSES(ibv_cmd_poll_cq)
FAIRLEAD_REFUSES(ibv_cmd_post_recv)
FAIRLEAD_REFUSES(ibv_cmd_post_send)
FAIRLEAD_REFUSES(ibv_cmd_post_srq_recv)
FAIRLEAD_REFUSES(ibv_cmd_query_context)
FAIRLEAD_REFUSES(ibv_cmd_query_device_any)
FAIRLEAD_REFUSES(ibv_cmd_query_mr)
FAIRLEAD_REFUSES(ibv_cmd_query_port)
FAIRLEAD_REFUSES(ibv_cmd_query_qp)
FAIRLEAD_REFUSES(ibv_cmd_query_srq)
FAIRLEAD_REFUSES(ibv_cmd_read_counters)
FAIRLEAD_REFUSES(ibv_cmd_reg_dm_mr)
FAIRLEAD_REFUSES(ibv_cmd_reg_dmabuf_mr)
FAIRLEAD_REFUSES(ibv_cmd_reg_mr)
FAIRLEAD_REFUSES(ibv_cmd_req_notify_cq)
FAIRLEAD_REFUSES(ibv_cmd_rereg_mr)
FAIRLEAD_REFUSES(ibv_cmd_resize_cq)
