//! Stage 2 on the schedules of right programs, and of programs and schedules that are wrong.
#[path = "../stage1/programs.rs"]
mod programs;
#[path = "../stage1/sketch.rs"]
mod sketch;

use quadrille_compiler::domain::Domain;
use quadrille_compiler::dtype::{DType, RedOp};
use quadrille_compiler::{emit, kernel, lower, verify};

#[test]
fn look() {
    for (name, sketch) in programs::all() {
        for n in 1..=8 {
            let program = sketch.program(n).unwrap();
            let domain = Domain::full_mesh(n);
            let schedule = lower::lower(&program, &domain).unwrap();
            if n == 3 {
                println!("== {name}\n{schedule}");
            }
            let verified = match verify::schedule(schedule, &program, &domain) {
                Ok(v) => v,
                Err(e) => {
                    for d in e {
                        println!("{n}: {}", d.plain());
                    }
                    continue;
                }
            };
            let k = kernel::build(&verified, &program, DType::Bf16, RedOp::Sum);
            if n == 3 {
                println!("{k}");
            }
            let k = match verify::kernel(k, &verified) {
                Ok(v) => v,
                Err(e) => {
                    for d in e {
                        println!("{n}: {}", d.plain());
                    }
                    continue;
                }
            };
            let c = emit::cuda(&k);
            std::fs::write(format!("/tmp/cuda/{}_{n}.cu", name.replace([' ', ','], "_")), &c.text).unwrap();
        }
    }
}
