SELECT job, label, number FROM effects ORDER BY job
