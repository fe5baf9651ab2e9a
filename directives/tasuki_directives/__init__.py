"""XcalableMP and XcalableACC directives in C: reading, binding to statements, checks."""
